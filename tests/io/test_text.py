"""Text is read in blocks: where they end changes neither the content nor the places that messages name."""

import numpy as np
import pytest

from file_limits import GRAPH, SPINS
from one_line import check_one_line_error
from treefield.io import read_image, read_model, write_model


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
        monkeypatch.setattr("treefield.io.images.netpbm.BLOCK", size)
        assert read_image(path).tolist() == expected


def test_a_message_counts_the_lines_of_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("treefield.io.text.BLOCK", 50)
    path = tmp_path / "x.uai"
    path.write_text("MARKOV\n2\n2 2\n1\n1 0\n2\n" + "\n" * 500 + "1\n-3\n")
    check_one_line_error(lambda: read_model(path), ValueError, "line 508 ('-3')")
    path.write_text("MARKOV\n2\n2 2\n1\n1 0\n2\n" + "\n" * 500 + "1\nx\n")
    check_one_line_error(lambda: read_model(path), ValueError, "line 508 ('x') is not a number")
    path = tmp_path / "x.cfn"
    path.write_text('{problem:{name:x mustbe:"<9.0"}\n' + "# note\n" * 500 + "\n\nx")
    check_one_line_error(lambda: read_model(path), ValueError, "line 504 ('x')")
