"""Which boxes depend on each other: those with a site in common, or with neighbours."""

import itertools

import pytest

from treefield.tiling.tiles import border_boxes, is_touching, tile_boxes


def boxes(length):
    sides = [slice(a, b) for a, b in itertools.combinations(range(length + 1), 2)]
    return list(itertools.product(sides, sides))


def sites(box):
    return set(itertools.product(*(range(part.start, part.stop) for part in box)))


def with_neighbours(inside):
    return inside | {(i + a, j + b) for i, j in inside for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0))}


def test_boxes_touch_if_they_have_a_site_in_common_or_neighbours():
    for first, second in itertools.product(boxes(4), repeat=2):
        assert is_touching(first, second) == bool(with_neighbours(sites(first)) & sites(second)), (first, second)


@pytest.mark.parametrize("shape, tile", [((20, 31), (6, 5)), ((9, 8, 10), (4, 4, 4)), ((5, 40), (5, 7))])
def test_no_box_touches_another_of_its_colour_class(shape, tile):
    borders = [border_boxes(shape, tile, axis) for axis in range(len(shape))]
    cuts = [tile_boxes(shape, tile), tile_boxes(shape, tile, is_shifted=True), *borders]
    classes = [boxes for cut in cuts for boxes in cut]
    assert max(map(len, classes)) > 1
    for boxes in classes:
        for first, second in itertools.combinations(boxes, 2):
            assert not is_touching(first, second)
