"""Readers take time and memory in proportion to the file: counts bound what is read, a limit what is unpacked."""

import contextlib
import gzip
import lzma
import os
import pathlib
import struct
import time
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image

import treefield as tf
from one_line import check_refused
from treefield.io import (
    open_image,
    read_evidence,
    read_image,
    read_model,
    read_mpe,
    save_model,
    write_image,
    write_model,
)
from treefield.io.files import TooLargeError, check_unpacked

VARIABLE = "TREEFIELD_MAX_UNPACKED"
TABLES = [np.arange(6).reshape(2, 3), np.array([[1, np.inf], [2, 3], [0, 4]])]
GRAPH = tf.GraphMRF([[0, 1], [2, 0, 4], [0, 3]], [(0, 1), (1, 2)], TABLES, offset=2)
SPINS = tf.GraphMRF(np.zeros((40, 2)), [(i, i + 1) for i in range(39)], tf.Table([[1, -1], [-1, 1]]))
CFN = '{problem: {name: x, mustbe: "<100.0"}, variables: {a: %d, b: %d}, functions: {%s}}'


@contextlib.contextmanager
def memory_below(most):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def npy(shape, data=b"", descr="<f8", version=1, claimed=None):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    length = len(header) if claimed is None else claimed
    return b"\x93NUMPY" + bytes([version, 0]) + length.to_bytes(2 * version, "little") + header + data


def npz(path, unary):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("unary.npy", unary)
        archive.writestr("potts.npy", npy((), bytes(8)))


# counts

ONES = b"1 " * 10_000_000
EXCESS = {
    "model.uai": (b"", "begins with '1'"),
    "model.wcsp": (b"", "the sites of cost function 0"),
    "model.cfn": (b"", "a bracket that opens the problem"),
    "factors.uai": (b"MARKOV 1 2 1 1 0 2 1 1 ", "1 factors are announced, but more follows at line 1 ('1')"),
    "functions.wcsp": (b"x 1 2 1 9 2 1 0 0 1 0 5 ", "1 cost functions are announced, but more follows"),
    "costs.cfn": ((CFN % (2, 2, "f: {scope: [a], costs: [")).encode()[:-2], "f has more than 2 costs"),
    "edges.mc": (b"3 1 1 2 1 ", "1 edges are announced, but more follows"),
    "elements.qubo": (b"p qubo 0 2 1 1\n0 0 1 0 1 1\n", "1 diagonals and 1 elements are announced, but more follows"),
}


@pytest.mark.parametrize("name", EXCESS)
def test_a_text_is_read_no_further_than_its_counts_announce(tmp_path, name):
    start, words = EXCESS[name]
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(start + ONES.replace(b" ", b"\n") if name.endswith("qubo") else start + ONES, 1))
    with memory_below(30_000_000):
        check_refused(lambda: read_model(path), ValueError, str(path), words)


def test_evidence_and_answers_are_read_no_further_than_their_counts_announce(tmp_path):
    path = tmp_path / "model.evid.gz"
    path.write_bytes(gzip.compress(b"2 0 1 1 0 " + ONES, 1))
    with memory_below(30_000_000):
        check_refused(lambda: read_evidence(path), ValueError, "2 samples")
    path.write_bytes(gzip.compress(b"1 2 0 1 1 0 " + ONES, 1))
    with memory_below(30_000_000):
        check_refused(lambda: read_evidence(path), ValueError, "2 sites are known", "at least 5 numbers")
    path.write_bytes(gzip.compress(b"MPE " + (b"1000000 " + b"1 " * 1_000_000) * 10, 1))
    with memory_below(60_000_000):  # of many answers only the last is kept
        assert read_mpe(path).tolist() == [1] * 1_000_000


def test_values_behind_a_text_image_are_not_read(tmp_path):
    path = tmp_path / "x.pgm"
    path.write_bytes(b"P2\n2 2\n255\n# four\n1 2 3 4 " + b"7 " * 10_000_000)
    with memory_below(30_000_000):
        assert read_image(path).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.uai", b"MARKOV 1000000000000000000 2", "the number of sites"),
        ("x.uai", b"MARKOV 9007199254740992 2", "9007199254740992 numbers are expected, 1 follow"),
        ("x.uai", b"MARKOV -1", "'-1'"),
        ("x.uai", b"MARKOV 1 2147483647 0", "claims tables"),
        ("x.uai", b"MARKOV 1 2 9007199254740992 1 0", "it ends before the arity of factor 1 of 9007199254740992"),
        ("x.uai", b"MARKOV 1 2 1 1 0 2 1e999999999 1", "'1e999999999'"),
        ("x.uai", b"MARKOV 1 2 1 1 0 2 " + b"9" * 1_000_000 + b" 1", "99..."),
        ("x.uai", b"MARKOV 1 2 1 1 0 2 " + b"9" * 3_000_000 + b" 1", "more than 1 MB"),
        ("x.wcsp", b"x 1 2147483647 0 10 2147483647", "claims tables"),
        ("x.wcsp", b"x 1 2 1 10 2 1 0 0 9007199254740992 0 1", "18014398509481984 numbers are expected, 2 follow"),
        ("x.mc", b"3 9007199254740992 1 2 3", "3 numbers for 9007199254740992 edges"),
        ("x.qubo", b"p qubo 0 9007199254740992 0 0", "claims 9007199254740992 sites"),
        ("x.coo", b"# vartype=SPIN\n0 2147483646 1\n", "claims 2147483647 sites"),
        ("x.cfn", b"{" * 3_000_000, "problem is expected"),
        ("x.cfn", b"#" + b"x" * 3_000_000, "more than 1 MB"),
        ("x.cfn", b'{problem: {name: "' + b"x" * 3_000_000 + b'"', "more than 1 MB"),
        ("x.bqm", b"DIMODBQM\2\0\xff\xff\xff\xff" + bytes(1_000_000), "claims 4294967295 bytes"),
    ],
)
def test_huge_numbers_and_words_are_refused_without_allocating(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_bytes(text)
    with memory_below(60_000_000):
        check_refused(lambda: read_model(path), ValueError, str(path), words)


def test_cfn_with_braces_alone_takes_no_longer_than_with_brackets(tmp_path):
    parts = "".join(f"f{i}: {{scope: [a, b], costs: [0, 1, {i % 5}, 0]}}\n" for i in range(16_000))
    text = CFN % (2, 2, parts)
    (tmp_path / "brackets.cfn").write_text(text)
    (tmp_path / "braces.cfn").write_text(text.replace("[", "{").replace("]", "}"))
    brackets = read_model(tmp_path / "brackets.cfn")
    start = time.process_time()
    braces = read_model(tmp_path / "braces.cfn")
    assert time.process_time() - start < 10  # the search for brackets was quadratic: 20 s and more
    assert np.array_equal(braces.edges, brackets.edges)
    assert braces.energy([0, 1]) == brackets.energy([0, 1])


def test_cfn_functions_that_share_a_large_table_are_refused_without_allocating(tmp_path):
    path = tmp_path / "x.cfn"
    shared = "".join(f"g{i}: {{scope: [a, b], costs: z}} " for i in range(5000))
    path.write_text(CFN % (200, 200, f"{shared} z: {{scope: [a, b], costs: [{'1 ' * 40_000}]}}"))
    with memory_below(500_000_000):
        check_refused(lambda: read_model(path), ValueError, "claims tables")


def test_wcsp_functions_that_share_many_tuples_are_refused(tmp_path):
    path = tmp_path / "x.wcsp"
    path.write_text("x 2 2 2001 10 2 2 -2 0 1 0 20000 " + "0 0 1 " * 20_000 + "2 0 1 0 -1 " * 2000)
    check_refused(lambda: read_model(path), ValueError, "claims tables")


# blocks


@pytest.mark.parametrize("suffix", [".uai", ".wcsp", ".cfn", ".mc", ".coo", ".qubo", ".bqm", ".uai.gz", ".cfn.xz"])
@pytest.mark.parametrize("size", [80, 81, 97, 300])
def test_a_model_does_not_depend_on_where_blocks_end(tmp_path, monkeypatch, suffix, size):
    path = tmp_path / f"model{suffix}"
    write_model(path, SPINS if suffix in (".mc", ".coo", ".qubo", ".bqm") else GRAPH)
    expected = read_model(path)
    monkeypatch.setattr("treefield.io.text.BLOCK", size)
    found = read_model(path)
    assert found.edges.tolist() == expected.edges.tolist() and found.offset == expected.offset
    for site in range(expected.size):
        assert np.array_equal(found.unaries[site], expected.unaries[site])
    for edge in range(len(expected.edges)):
        assert np.array_equal(found.edge_costs(edge), expected.edge_costs(edge))


def test_cfn_texts_and_comments_may_lie_anywhere_in_a_block(tmp_path, monkeypatch):
    path = tmp_path / "x.cfn"
    text = '{problem:{name:"a [b] #c",mustbe:"<9.0"}\n# "one\nvariables:{"a #" :2,"b":[#x,"#y z"]}functions:{f:{scope:['
    path.write_text(text + '"a #","b"]\n#]\ndefaultcost:0 costs:[1,#x,2,1,"#y z",3]}}}')
    expected = read_model(path).edge_costs(0).tolist()
    assert expected == [[0, 0], [2, 3]]
    for size in range(24, 120):
        monkeypatch.setattr("treefield.io.text.BLOCK", size)
        assert read_model(path).edge_costs(0).tolist() == expected


@pytest.mark.parametrize(("kind", "text"), [("P2", "1 2 # 9\n3#8\n 4 5 6"), ("P1", "10#1\n 01\n#0\n11")])
def test_a_text_image_does_not_depend_on_where_blocks_end(tmp_path, monkeypatch, kind, text):
    path = tmp_path / "x.pnm"
    path.write_text(f"{kind}\n3 2\n{'255' if kind == 'P2' else ''}\n{text}\n")
    expected = read_image(path).tolist()
    for size in range(5, 30):
        monkeypatch.setattr("treefield.io.text.BLOCK", size)
        monkeypatch.setattr("treefield.io.netpbm.BLOCK", size)
        assert read_image(path).tolist() == expected


def test_a_message_counts_the_lines_of_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("treefield.io.text.BLOCK", 50)
    path = tmp_path / "x.uai"
    path.write_text("MARKOV\n2\n2 2\n1\n1 0\n2\n" + "\n" * 500 + "1\n-3\n")
    check_refused(lambda: read_model(path), ValueError, "line 508 ('-3')")
    path.write_text("MARKOV\n2\n2 2\n1\n1 0\n2\n" + "\n" * 500 + "1\nx\n")
    check_refused(lambda: read_model(path), ValueError, "line 508 ('x') is not a number")
    path = tmp_path / "x.cfn"
    path.write_text('{problem:{name:x mustbe:"<9.0"}\n' + "# note\n" * 500 + "\n\nx")
    check_refused(lambda: read_model(path), ValueError, "line 504 ('x')")


# packed files


def flat_png(path, width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes((width + 1) * height), 9)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b""))


def packed_model(path):
    mrf = tf.GraphMRF(np.zeros((30_000, 2)), [(0, 1)], tf.Potts(1))
    if path.suffix == ".npz":
        np.savez_compressed(path, unary=np.zeros((30, 1000, 2)), potts=1.0)
    else:
        write_model(path, mrf)


def packed_image(path):
    if path.suffix == ".png":
        flat_png(path, 1000, 600)
    elif path.suffix == ".npz":
        np.savez_compressed(path, image=np.zeros((600, 1000), np.uint8))
    else:
        write_image(path, np.zeros((600, 1000), np.uint8))


@pytest.mark.parametrize(
    ("name", "make", "read"),
    [(f"x{suffix}", packed_model, read_model) for suffix in (".uai.gz", ".uai.xz", ".cfn.gz", ".npz")]
    + [(f"x{suffix}", packed_image, read_image) for suffix in (".png", ".jpg", ".tif", ".npz")],
)
def test_what_unpacks_to_more_than_the_limit_is_refused_until_the_limit_is_raised(
    tmp_path, monkeypatch, name, make, read
):
    path = tmp_path / name
    make(path)
    monkeypatch.setenv(VARIABLE, "100kB")
    error = check_refused(lambda: read(path), TooLargeError, str(path), "unpacks to", "the limit is 100 kB", VARIABLE)
    assert error.args[0].endswith("MB to read it")
    advice = "5MB" if "more than" in error.args[0] else error.args[0].partition("=")[2].split()[0]
    for enough in ("5 MB", "5000000", advice):
        monkeypatch.setenv(VARIABLE, enough)
        assert read(path).size
    monkeypatch.setenv(VARIABLE, "plenty")
    check_refused(lambda: read(path), TooLargeError, str(path), f"{VARIABLE} must be", "'plenty'")


def test_the_limit_grows_with_the_file(tmp_path, monkeypatch):
    path = tmp_path / "x.png"
    for size, limit in ((1000, 512_000_000), (10_000_000, 1_000_000_000)):
        with path.open("wb") as file:
            file.truncate(size)
        check_unpacked(path, limit)
        check_refused(lambda limit=limit: check_unpacked(path, limit + 1), TooLargeError, str(path), "the limit is")
    check_refused(lambda: check_unpacked(path, 2 * limit), TooLargeError, "unpacks to 2 GB", f"{VARIABLE}=2000MB")


def test_a_small_text_that_unpacks_to_much_is_refused_by_default(tmp_path):
    path = tmp_path / "x.uai.xz"
    path.write_bytes(lzma.compress(b"MARKOV" + b" " * 40_000_000, preset=0))
    check_refused(lambda: read_model(path), TooLargeError, str(path), "more than 32 MB", VARIABLE)


def test_a_small_png_that_unpacks_to_much_is_refused_by_default(tmp_path):
    path = tmp_path / "x.png"
    flat_png(path, 24_000, 24_000)
    with memory_below(10_000_000):
        check_refused(lambda: read_image(path), TooLargeError, str(path), "unpacks to 576 MB", "512 MB", "=576MB")


def test_files_that_are_not_packed_have_no_limit(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1kB")
    write_model(tmp_path / "x.uai", SPINS)
    write_image(tmp_path / "x.npy", np.zeros((100, 100)))
    write_image(tmp_path / "x.pgm", np.zeros((100, 100), np.uint8))
    assert read_model(tmp_path / "x.uai").size == 40
    assert read_image(tmp_path / "x.npy").shape == read_image(tmp_path / "x.pgm").shape == (100, 100)


def test_a_png_chunk_that_claims_more_than_the_file_is_refused_without_allocating(tmp_path):
    path = tmp_path / "x.png"
    flat_png(path, 10, 10)
    whole = path.read_bytes()
    at = whole.index(b"IDAT") - 4
    path.write_bytes(whole[:at] + struct.pack(">I", 2**31 - 1) + whole[at + 4 :])
    with memory_below(10_000_000):
        check_refused(lambda: read_image(path), ValueError, str(path), "claim 2147483647 bytes")
    path.write_bytes(whole + b"\xff" * 100)  # whatever follows the image is not read
    assert read_image(path).shape == (10, 10)


def test_a_jpeg_of_many_scans_is_refused(tmp_path):
    path = tmp_path / "x.jpg"
    Image.new("RGB", (64, 64)).save(path, progressive=True)
    assert read_image(path).shape == (64, 64, 3)
    whole = path.read_bytes()
    scan = whole[whole.rindex(b"\xff\xda") : -2]
    path.write_bytes(whole[:-2] + scan * 200 + whole[-2:])
    check_refused(lambda: read_image(path), ValueError, str(path), "scans, expected up to 100")


def test_a_zarr_chunk_larger_than_memory_is_refused(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "x.zarr"
    zarr.create_array(store=str(path), shape=(2**20, 2**20), chunks=(2**20, 2**20), dtype=np.uint8)
    monkeypatch.setattr("treefield.io.files.available_memory", lambda: 10**9)

    def read():
        with open_image(path):
            pass

    check_refused(read, TooLargeError, str(path), "1.1 TB")


def test_a_tiff_tile_larger_than_the_limit_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, np.zeros((64, 64), np.uint8), tile=(1024, 1024), compression="zlib")
    assert read_image(path).shape == (64, 64)
    monkeypatch.setenv(VARIABLE, "1MB")
    check_refused(lambda: read_image(path), TooLargeError, str(path), "unpacks to 1.05 MB")


@pytest.mark.parametrize(
    ("unary", "words"),
    [
        (npy((2**40,)), "too short"),
        (npy((2,), bytes(100), descr="|O"), "Python objects"),
        (npy((2, 2, 2), bytes(1000)), "unary.npy holds more data"),
        (npy((2, 2, 2), bytes(5_000_000), version=2, claimed=2**32 - 1), "header claims 4294967295 bytes"),
    ],
)
def test_a_member_of_a_model_holds_what_its_header_announces(tmp_path, unary, words):
    npz(tmp_path / "x.npz", unary)
    with memory_below(10_000_000):
        check_refused(lambda: read_model(tmp_path / "x.npz"), ValueError, "x.npz", words)


def test_a_flipped_bit_in_a_saved_model_is_found(tmp_path):
    path = tmp_path / "x.npz"
    save_model(path, tf.GridMRF(np.arange(24.0).reshape(2, 3, 4), tf.Potts(1)))
    data = bytearray(path.read_bytes())
    data[data.index(np.float64(7).tobytes()) + 6] ^= 1
    path.write_bytes(data)
    check_refused(lambda: read_model(path), ValueError, "x.npz", "CRC")


def test_hdf5_data_in_other_files_and_repeated_kinds_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")

    def write(name, kinds, **values):
        with h5py.File(tmp_path / name, "w") as file:
            header = [2, 0, 1, 1, kinds, *[16000, 1] * kinds, 1]
            arrays = {"header": header, "numbers-of-states": [2], "factors": [0, 0, 1, 0]}
            for key, array in {**arrays, "function-id-16000/indices": [1, 2]}.items():
                file.create_dataset(f"gm/{key}", data=np.array(array, np.uint64))
            file.create_dataset("gm/function-id-16000/values", **values)
        return tmp_path / name

    assert read_model(write("good.h5", 1, data=np.array([1.0, 2.0]))).unaries[0].tolist() == [1, 2]
    (tmp_path / "values.bin").write_bytes(bytes(16))
    path = write("external.h5", 1, shape=(2,), dtype="f8", external=[(str(tmp_path / "values.bin"), 0, 16)])
    check_refused(lambda: read_model(path), ValueError, str(path), "stored in other files")
    path = write("kinds.h5", 2, data=np.array([1.0, 2.0]))
    check_refused(lambda: read_model(path), ValueError, str(path), "a kind of functions twice")


def test_a_packed_hdf5_file_has_the_limit_too(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    write_model(path, GRAPH)
    with h5py.File(path, "r+") as file:
        del file["gm/function-id-16000/values"]
        file.create_dataset("gm/function-id-16000/values", data=np.zeros(100_000), compression="gzip")
    monkeypatch.setenv(VARIABLE, "500kB")
    check_refused(lambda: read_model(path), TooLargeError, str(path), "unpacks to 800 kB", VARIABLE)


@pytest.mark.parametrize("suffix", [".uai", ".wcsp", ".cfn", ".mc", ".coo", ".qubo", ".bqm", ".npz", ".h5"])
def test_what_is_no_regular_file_is_refused(tmp_path, suffix):
    (tmp_path / f"folder{suffix}").mkdir()
    check_refused(lambda: read_model(tmp_path / f"folder{suffix}"), IsADirectoryError, "is a folder")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / f"pipe{suffix}")
        check_refused(lambda: read_model(tmp_path / f"pipe{suffix}"), ValueError, "not a regular file")
    if pathlib.Path("/dev/zero").exists():
        (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
        check_refused(lambda: read_model(tmp_path / f"zero{suffix}"), ValueError, "not a regular file")


@pytest.mark.parametrize("suffix", [".uai", ".wcsp", ".cfn", ".mc", ".coo", ".qubo", ".bqm", ".npz", ".h5"])
def test_a_sparse_file_of_zeros_is_refused_at_its_first_bytes(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    with path.open("wb") as file:
        file.truncate(20_000_000_000)
    with memory_below(10_000_000):
        check_refused(lambda: read_model(path), ValueError, str(path))
