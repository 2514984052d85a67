"""PNG, JPEG and their like: Pillow decodes them, but for 16-bit PNG, of which it would drop half."""

from __future__ import annotations

import colorsys
import io
import pathlib
import zlib
from typing import Any

import numpy as np

from treefield.io.files import import_optional
from treefield.io.images.orientation import upright
from treefield.io.limits import MAX_DEFLATE_RATIO, check_memory, check_unpacked

# Pillow's decoders by suffix. Image.open would look at the content, and has a limit on pixels for the whole process.
_DECODERS = {
    ".png": ("PngImagePlugin", "PngImageFile"),
    ".jpg": ("JpegImagePlugin", "jpeg_factory"),
    ".jpeg": ("JpegImagePlugin", "jpeg_factory"),
    ".bmp": ("BmpImagePlugin", "BmpImageFile"),
    ".gif": ("GifImagePlugin", "GifImageFile"),
    ".webp": ("WebPImagePlugin", "WebPImageFile"),
}
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
MAX_JPEG_SIDE, MAX_PNG16_SIDE = 65500, 1_000_000  # pixels a side: limits of libjpeg and libpng
_PIXEL_BYTES = {"I;16": 2, "I": 4, "F": 4}  # by mode; of others one for each channel
_MOST_SCANS = 100  # of a progressive JPEG: encoders write about ten
_BAND = 2**18  # pixels that are copied at once


def read_picture(path: pathlib.Path, labels: bool) -> tuple[np.ndarray, bool]:
    """Read an image; returns its array and whether the last axis is channels.

    With `labels`, palette indices and the small numbers of grey PNG of 2 and 4 bits are left unchanged.
    """
    with path.open("rb") as file:
        depth = colour = None
        if path.suffix.lower() == ".png":
            depth, colour = _read_png_header(path, file.read(29))
            _check_chunks(file, path.stat().st_size)
            file.seek(0)
        elif path.suffix.lower() in (".jpg", ".jpeg"):
            _check_scans(file.read())
            file.seek(0)
        image = _open_header(path, file, labels)
        if depth == 16:
            codecs = import_optional("imagecodecs", "imagecodecs", "reading 16-bit PNG")
            array = codecs.png_decode(_essential(path.read_bytes()))
        else:
            image.load()
            array = _array(_to_common_mode(image, labels))
        if labels and colour == 0 and depth in (2, 4):  # Pillow stretches them to 0..255
            array = array // (255 // (2**depth - 1))
        return upright(array, _orientation(image)), array.ndim == 3


def _read_png_header(path: pathlib.Path, header: bytes) -> tuple[int, int]:
    """Bit depth and colour type of a PNG file, or an error if it cannot be as large as it claims."""
    if header[:8] != _SIGNATURE or header[12:16] != b"IHDR" or len(header) < 29:
        raise ValueError(f"it starts with {header[:8]!r}, so it is not PNG, whatever its name says")
    width, height = int.from_bytes(header[16:20]), int.from_bytes(header[20:24])
    depth, colour = header[24], header[25]
    if colour not in _PNG_CHANNELS or depth not in (1, 2, 4, 8, 16) or header[26:28] != b"\0\0" or header[28] > 1:
        raise ValueError(f"its header is damaged: {depth} bits of colour type {colour}, then {header[26:]!r}")
    row = width * _PNG_CHANNELS[colour] * depth // 8
    if height * row > path.stat().st_size * MAX_DEFLATE_RATIO:
        raise ValueError(f"its header promises {width} x {height} pixels, but the file is too short for that")
    if depth == 16:  # transparency may add a channel
        if max(width, height) > MAX_PNG16_SIDE:
            raise ValueError(f"it has {width} x {height} pixels, but 16-bit PNG is read up to {MAX_PNG16_SIDE} a side")
        check_memory(path, 2 * (_PNG_CHANNELS[colour] + 1) * width * height)
    return depth, colour


def _check_chunks(file: Any, size: int) -> None:
    """Raise if pixels of a PNG file claim more bytes than the file has: Pillow would allocate them."""
    position, kind = len(_SIGNATURE), b""
    while position < size and kind != b"IEND":
        file.seek(position)
        length, kind = int.from_bytes(file.read(4)), file.read(4)
        if kind == b"IDAT" and length > size:
            raise ValueError(f"it is damaged: its pixels claim {length} bytes")
        position += 12 + length


def _check_scans(data: bytes) -> None:
    """Raise if a JPEG file has many scans, each of which takes as long as the image, however few bytes it has."""
    scans = data.count(b"\xff\xda")
    if scans > _MOST_SCANS:
        raise ValueError(f"it has {scans} scans, expected up to {_MOST_SCANS}")


def _essential(data: bytes) -> bytes:
    """A PNG file without notes: libpng prints what it thinks of them. Damage is found here, by the checksums."""
    kept, position, kind = [_SIGNATURE], len(_SIGNATURE), b""
    while kind != b"IEND":
        kind, end = data[position + 4 : position + 8], position + 12 + int.from_bytes(data[position : position + 4])
        if end > len(data):
            raise ValueError("it is truncated")
        if zlib.crc32(data[position + 4 : end - 4]) != int.from_bytes(data[end - 4 : end]):
            raise ValueError("it is damaged: a checksum is wrong")
        if kind in (b"IHDR", b"tRNS", b"IDAT", b"IEND"):
            kept.append(data[position:end])
        position = end
    return b"".join(kept)


def _open_header(path: pathlib.Path, file: Any, labels: bool) -> Any:
    """A Pillow image of which only the header is read, or an error if it will not fit into memory."""
    pillow = import_optional("PIL.Image", "Pillow", "reading")
    module, decoder = _DECODERS[path.suffix.lower()]
    try:
        image = getattr(import_optional(f"PIL.{module}", "Pillow", "reading"), decoder)(file, str(path))
    except SyntaxError as error:  # so Pillow says that it is not that format
        raise ValueError(f"{str(error) or 'it is damaged'} ({path.suffix} expected by its name)") from None
    except pillow.DecompressionBombError:  # some decoders have that limit all the same
        raise ValueError(
            "it has more pixels than Pillow allows in this format; save it as PNG or TIFF, or raise "
            "PIL.Image.MAX_IMAGE_PIXELS"
        ) from None
    width, height = image.size
    if width <= 0 or height <= 0:
        raise ValueError(f"it is empty: {width} x {height} pixels")
    colours = 3 if image.mode == "P" and not labels else len(image.getbands())
    check_unpacked(path, width * height * _PIXEL_BYTES.get(image.mode, colours))
    check_memory(path, 8 * width * height)  # Pillow has 4 bytes a pixel, the array up to 4 more
    return image


def _array(image: Any) -> np.ndarray:
    """The pixels of an image, copied band by band: all at once, Pillow would need three times their memory."""
    width, height = image.size
    rows = max(1, _BAND // width)
    pixel = np.asarray(image.crop((0, 0, 1, 1)))
    array = np.empty((height, width, *pixel.shape[2:]), pixel.dtype)
    for top in range(0, height, rows):
        array[top : top + rows] = image.crop((0, top, width, min(top + rows, height)))
    return array


def _to_common_mode(image: Any, labels: bool) -> Any:
    """The image in a mode that is an array of grey or RGB values, with alpha if there is any transparency."""
    if labels and image.mode in ("P", "PA"):
        return image if image.mode == "P" else image.getchannel(0)
    if image.has_transparency_data and (not labels or image.mode == "RGB"):
        return image.convert("LA" if image.mode in ("1", "L", "LA", "La") else "RGBA")
    return image if image.mode in ("1", "L", "LA", "RGB", "RGBA", "I;16", "F") else image.convert("RGB")


def _orientation(image: Any) -> Any:
    try:
        return image.getexif().get(274, 1)
    except Exception:  # a damaged note is no reason to refuse the image
        return 1


def encode_png(array: np.ndarray) -> list[Any]:
    """The data of a PNG file of a bool, uint8 or uint16 image."""
    if array.dtype == np.uint16:
        codecs = import_optional("imagecodecs", "imagecodecs", "writing 16-bit PNG")
        return [codecs.png_encode(np.ascontiguousarray(array), level=6)]
    return [_saved(_image(array), "PNG")]


def encode_jpeg(array: np.ndarray) -> list[Any]:
    """The data of a JPEG file of high quality."""
    return [_saved(_image(array), "JPEG", quality=95, subsampling=0)]


def encode_palette_png(labels: np.ndarray) -> list[Any]:
    """The data of a PNG file whose 8-bit indices are the labels, each shown in another colour."""
    image = _image(labels)
    image.putpalette(label_colours().tobytes())
    return [_saved(image, "PNG")]


def label_colours() -> np.ndarray:
    """256 colours, (256, 3): black, then hues by the golden ratio, so that labels near each other differ much."""
    colours = [(0.0, 0.0, 0.0)]
    for k in range(1, 256):
        saturation, value = ((0.65, 0.95), (0.9, 0.75), (0.45, 0.85), (0.8, 0.55))[k // 7 % 4]
        colours.append(colorsys.hsv_to_rgb(k * 0.618033988749895 % 1, saturation, value))
    return np.round(np.array(colours) * 255).astype(np.uint8)


def _image(array: np.ndarray) -> Any:
    return import_optional("PIL.Image", "Pillow", "writing").fromarray(np.ascontiguousarray(array))


def _saved(image: Any, kind: str, **options: Any) -> bytes:
    data = io.BytesIO()  # not to the file: Pillow does not say why if the disk is full
    image.save(data, kind, **options)
    return data.getvalue()
