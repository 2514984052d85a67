"""Files that claim much, and the memory that reading them may take."""

import contextlib
import struct
import tracemalloc
import zlib

import numpy as np

import treefield as tf

VARIABLE = "TREEFIELD_MAX_UNPACKED"
TABLES = [np.arange(6).reshape(2, 3), np.array([[1, np.inf], [2, 3], [0, 4]])]
GRAPH = tf.GraphMRF([[0, 1], [2, 0, 4], [0, 3]], [(0, 1), (1, 2)], TABLES, offset=2)
SPINS = tf.GraphMRF(np.zeros((40, 2)), [(i, i + 1) for i in range(39)], tf.Table([[1, -1], [-1, 1]]))


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


def flat_png(path, width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes((width + 1) * height), 9)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b""))
