"""Images read and written box by box are those read and written whole."""

import itertools

import numpy as np
import pytest
import tifffile
import zarr

from small import check_raises
from treefield.io import new_image, open_image, read_image, write_image

SHAPES = {"grey": (70, 53), "rgb": (70, 53, 3), "rgba": (40, 53, 4), "volume": (3, 40, 33), "colours": (2, 40, 33, 3)}
LAYOUTS = {
    "plain": {},
    "strips": {"compression": "zlib", "rowsperstrip": 7},
    "tiles": {"compression": "zlib", "tile": (32, 16)},
    "motorola": {"compression": "zlib", "tile": (16, 32), "byteorder": ">"},
    "motorola, plain": {"byteorder": ">"},
    "big": {"bigtiff": True, "tile": (48, 48)},
    "predictor": {"compression": "zlib", "predictor": True},
}
WHOLE = np.random.default_rng(0).integers(0, 2**16, 2**16).astype(np.uint16)


def image_of(shape, dtype=np.uint16):
    return WHOLE[: int(np.prod(shape))].reshape(shape).astype(dtype)


def boxes(shape, parts=3):
    """A grid of boxes."""
    return itertools.product(*([slice(n * k // parts, n * (k + 1) // parts) for k in range(parts)] for n in shape))


def check_equal(found, image):
    assert tuple(found.shape) == image.shape and np.dtype(found.dtype).newbyteorder("=") == image.dtype
    for box in boxes(image.shape):
        np.testing.assert_array_equal(found[box], image[box])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SHAPES)
def test_a_tiff_is_read_by_boxes_as_it_is_whole(tmp_path, name, layout):
    image = image_of(SHAPES[name])
    colour = "rgb" if image.shape[-1] in (3, 4) else "minisblack"
    tifffile.imwrite(tmp_path / "image.tif", image, photometric=colour, **LAYOUTS[layout])
    with open_image(tmp_path / "image.tif", tmp_path) as found:
        check_equal(found, image)
    np.testing.assert_array_equal(read_image(tmp_path / "image.tif"), image)
    assert [path.name for path in tmp_path.iterdir()] == ["image.tif"]


def test_a_volume_in_tiles_of_several_layers_is_read(tmp_path):
    image = image_of((20, 40, 33))
    tifffile.imwrite(
        tmp_path / "image.tif", image, photometric="minisblack", volumetric=True, tile=(16, 16, 16), compression="zlib"
    )
    with open_image(tmp_path / "image.tif") as found:
        check_equal(found, image)


def test_a_white_is_zero_tiff_is_inverted(tmp_path):
    image = image_of((30, 20), np.uint8)
    tifffile.imwrite(tmp_path / "image.tif", ~image, photometric="miniswhite")
    with open_image(tmp_path / "image.tif") as found:
        check_equal(found, image)
    np.testing.assert_array_equal(read_image(tmp_path / "image.tif"), image)


@pytest.mark.parametrize("suffix", [".tif", ".npy", ".zarr"])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_an_image_written_by_boxes_is_read_again(tmp_path, name, suffix, dtype):
    image, path = image_of(SHAPES[name], dtype), tmp_path / f"image{suffix}"
    with new_image(path, image.shape, dtype, channels=image.shape[-1] in (3, 4)) as out:
        for box in boxes(image.shape, parts=2):
            out[box] = image[box]
    with open_image(path) as found:
        check_equal(found, image)
    if suffix != ".zarr":
        np.testing.assert_array_equal(read_image(path), image)
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


def test_a_tiff_larger_than_a_tile_is_written_in_tiles(tmp_path):
    image = np.arange(600 * 1100, dtype=np.uint32).reshape(600, 1100)
    with new_image(tmp_path / "image.tif", image.shape, image.dtype, channels=False) as out:
        out[:, :] = image
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "image.tif"), image)
    with tifffile.TiffFile(tmp_path / "image.tif") as file:
        assert file.pages[0].tile == (512, 512)


@pytest.mark.parametrize("suffix", [".png", ".pgm"])
def test_formats_without_boxes_are_read_whole(tmp_path, suffix):
    image = image_of((20, 30), np.uint8)
    write_image(tmp_path / f"image{suffix}", image)
    with open_image(tmp_path / f"image{suffix}") as found:
        np.testing.assert_array_equal(found, image)


@pytest.mark.parametrize("suffix", [".tif", ".npy", ".zarr"])
def test_an_existing_image_is_kept_unless_forced_and_if_writing_fails(tmp_path, suffix):
    path, image = tmp_path / f"image{suffix}", image_of((20, 30))
    with new_image(path, image.shape, image.dtype, channels=False) as out:
        out[:, :] = image

    def write(force, fail=False):
        with new_image(path, image.shape, image.dtype, channels=False, force=force) as out:
            out[:, :] = 7
            if fail:
                raise RuntimeError("no")

    check_raises(lambda: write(False), FileExistsError, "exists; give another name")
    check_raises(lambda: write(True, fail=True), RuntimeError, "no")
    with open_image(path) as found:
        check_equal(found, image)
    write(True)
    with open_image(path) as found:
        check_equal(found, np.full_like(image, 7))
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


def write_odd(folder):
    """Files that are not read by boxes."""
    small = image_of((20, 30), np.uint8)
    tifffile.imwrite(folder / "palette.tif", small, photometric="palette", colormap=np.zeros((3, 256), np.uint16))
    tifffile.imwrite(folder / "planar.tif", np.stack([small] * 3), photometric="rgb", planarconfig="separate")
    tifffile.imwrite(folder / "turned.tif", small, extratags=[(274, "H", 1, 6, True)])
    (folder / "empty.tif").write_bytes(b"")
    tifffile.imwrite(folder / "cut.tif", small, compression="zlib")
    (folder / "cut.tif").write_bytes((folder / "cut.tif").read_bytes()[:200])
    np.save(folder / "fortran.npy", np.asfortranarray(small))
    np.save(folder / "short.npy", small)
    (folder / "short.npy").write_bytes((folder / "short.npy").read_bytes()[:300])
    np.save(folder / "complex.npy", small + 1j)
    np.save(folder / "line.npy", small[0])
    (folder / "folder.zarr").mkdir()
    zarr.create_array(store=str(folder / "line.zarr"), shape=(9,), chunks=(9,), dtype="u1")


ODD = {
    "palette.tif": "palette",
    "planar.tif": "one after the other",
    "turned.tif": "save it upright",
    "empty.tif": "not an image that can be read",
    "cut.tif": "not an image that can be read",
    "fortran.npy": "stored by columns",
    "short.npy": "too short",
    "complex.npy": "expected numbers",
    "line.npy": "two to four axes",
    "folder.zarr": "not an image that can be read",
    "line.zarr": "two to four axes",
}


@pytest.mark.parametrize("name", ODD)
def test_an_image_that_cannot_be_read_by_boxes_is_refused_by_name(tmp_path, name):
    write_odd(tmp_path)
    with pytest.raises(ValueError, match=ODD[name]) as raised, open_image(tmp_path / name):
        pass
    assert name in str(raised.value)


def test_open_image_refuses_paths_that_lead_nowhere(tmp_path):
    for name in ("none.tif", "none.npy", "none.zarr"):
        with pytest.raises(FileNotFoundError, match="there is no"), open_image(tmp_path / name):
            pass
    with pytest.raises(ValueError, match="part by part"), new_image(tmp_path / "a.png", (2, 2), "u1", channels=False):
        pass
    (tmp_path / "mine.zarr").mkdir()
    with (
        pytest.raises(FileExistsError, match="no Zarr array: it is not replaced"),
        new_image(tmp_path / "mine.zarr", (2, 2), "u1", channels=False, force=True),
    ):
        pass
