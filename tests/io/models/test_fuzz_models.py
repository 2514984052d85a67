"""Damaged model files give a model or one line that names them; `python tests/fuzz_files.py 10000` asks more often."""

import random

import numpy as np
import pytest

import treefield as tf
from fuzz_files import OPTIONS, check, damaged, damaged_binary, damaged_files
from graph_files import data_file
from treefield.io import write_model

TABLES = [np.arange(6).reshape(2, 3), np.array([[1, np.inf], [2, 3], [0, 4]])]
GRAPH = tf.GraphMRF([[0, 1], [2, 0, 4], [0, 3]], [(0, 1), (1, 2)], TABLES, offset=2)
SPINS = tf.GraphMRF(np.zeros((4, 2)), [(0, 1), (1, 2), (2, 3)], tf.Table([[1, -1], [-1, 1]]), weights=[2, -3, 0.5])
SMALL = (".uai", ".wcsp", ".cfn", ".h5", ".npz", ".mc", ".coo", ".qubo", ".bqm", ".uai.gz", ".cfn.xz")
SHARED = ("uai/grid10x10.f10.uai", "uai/404.wcsp.uai", "spinglass/t2g10_5555", "spinglass/128power_001.txt")


@pytest.mark.parametrize("suffix", SMALL)
def test_damaged_small_models_are_read_or_refused(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    write_model(path, SPINS if suffix in (".mc", ".coo", ".qubo", ".bqm") else GRAPH)
    good, damage = path.read_bytes(), damaged if suffix in SMALL[:3] + SMALL[5:8] else damaged_binary
    read = 0
    for seed in range(60):
        path.write_bytes(damage(good, random.Random(seed)))
        read += check(path, {})
    assert read < 60


@pytest.mark.parametrize("name", SHARED)
def test_damaged_competition_models_are_read_or_refused(tmp_path, name):
    source = data_file(name)
    read = [check(path, OPTIONS.get(source.name, {})) for _, path in damaged_files(source, 25, tmp_path, seed=1)]
    assert not all(read)


@pytest.mark.parametrize("suffix", SMALL)
def test_every_prefix_of_a_model_file_is_read_or_refused(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    write_model(path, SPINS if suffix in (".mc", ".coo", ".qubo", ".bqm") else GRAPH)
    good = path.read_bytes()
    for end in range(0, len(good), max(1, len(good) // 60)):
        path.write_bytes(good[:end])
        check(path, {})
