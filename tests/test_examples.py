"""The examples run, and so does the code on the pages about graphs and about scale."""

import importlib.util
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import zarr
from PIL import Image

import treefield as tf

ROOT = Path(__file__).parents[1]


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_superpixels_example_writes_a_picture_and_prints_a_bound(tmp_path, capsys):
    example("superpixels").main([str(tmp_path / "regions.png"), "--crop", "120", "--colours", "4"])
    said = capsys.readouterr().out
    alone, energy, bound, gap = (float(number) for number in re.findall(r"(?:alone|energy|bound|gap) ([-\d.e]+)", said))
    assert bound <= energy <= alone and gap < 0.01
    assert np.asarray(Image.open(tmp_path / "regions.png")).shape == (120, 240, 3)


@pytest.mark.parametrize("seed", range(3))
def test_the_max_cut_example_finds_the_cut_of_a_bipartite_graph(seed):
    graph = nx.bipartite.random_graph(10, 12, 0.3, seed=seed)
    sides, cut, bound = example("max_cut").max_cut(graph, rng=0)
    assert cut == bound == graph.number_of_edges()
    assert sides[0] | sides[1] == set(graph) and not sides[0] & sides[1]
    assert nx.cut_size(graph, *sides) == cut


def test_the_max_cut_example_prints_how_many_edges_are_cut(capsys):
    example("max_cut").main(["--nodes", "20", "--time-limit", "0.5"])
    assert "edges are cut" in capsys.readouterr().out


def check_page(name, capsys):
    """Run the code of a page, which prints what it says; returns its names."""
    names = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / name).read_text(), re.DOTALL):
        exec(compile(block, f"docs/{name}", "exec"), names)
        said = [line.strip() for line in capsys.readouterr().out.splitlines()]
        promised = re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE)
        assert said[: len(promised)] == promised or not promised
    return names


def test_the_code_in_docs_graphs_md_prints_the_documented_output(capsys):
    assert check_page("graphs.md", capsys)


def test_the_code_in_docs_scale_md_writes_labels_of_low_energy(capsys, tmp_path, monkeypatch, no_hang):
    monkeypatch.chdir(tmp_path)
    image = np.random.default_rng(0).integers(0, 256, (90, 80), dtype=np.uint8)
    np.save("huge.npy", image)
    zarr.create_array(store="huge.zarr", data=image, chunks=(45, 40))
    names = check_page("scale.md", capsys)
    names["client"].close()
    names["cluster"].close()
    whole = tf.GridMRF(names["block_costs"](image), names["mrf"].pairwise)
    for labels in (np.load("labels.npy"), zarr.open_array("labels.zarr")[:, :]):
        assert labels.dtype == np.uint8 and whole.energy(labels) < 1.01 * tf.minimize(whole, rng=0).fun
