"""The Middlebury MRF benchmark's models, against their definition read out loud and the original library's energies."""

import numba
import numpy as np
import pytest

import problems

pytestmark = pytest.mark.skipif(problems.data_folder() is None, reason="the pictures are not here: set TREEFIELD_DATA")


@pytest.fixture(scope="module")
def tsukuba():
    return problems.middlebury_tsukuba()


@pytest.fixture(scope="module")
def venus():
    return problems.middlebury_venus()


@pytest.fixture(scope="module")
def penguin():
    return problems.middlebury_penguin()


def some_sites(shape, count=40):
    """Random sites, and those at the ends of the first and last columns."""
    rng = np.random.default_rng(0)
    corners = [(i, j) for i in (0, shape[0] - 1) for j in (0, 1, shape[1] - 2, shape[1] - 1)]
    return corners + [tuple(int(rng.integers(n)) for n in shape) for _ in range(count)]


def pair(name):
    return [problems.picture(f"{name}/{name}-im{side}.png").tolist() for side in "LR"]


def around(row, j, channel):
    """A value, and those half-way to its neighbours, rounded down."""
    middle = row[j][channel]
    return [middle] + [(middle + row[k][channel]) // 2 for k in (j - 1, j + 1) if 0 <= k < len(row)]


def outside(value, values):
    return max(0, value - max(values), min(values) - value)


def birchfield_tomasi(left, right, j, k, channel):
    here, there = around(left, j, channel), around(right, k, channel)
    return min(outside(here[0], there), outside(there[0], here))


@pytest.mark.parametrize(("name", "power", "limit"), [("tsukuba", 1, 765), ("venus", 2, 256)])
def test_stereo_costs_are_birchfield_and_tomasis(name, power, limit, request):
    mrf = request.getfixturevalue(name)
    left, right = pair(name)
    for i, j in some_sites(mrf.shape):
        for d in range(mrf.n_labels):
            cost = limit
            if j >= d:
                cost = sum(birchfield_tomasi(left[i], right[i], j, j - d, channel) ** power for channel in range(3))
            assert mrf.unary[i, j, d] == min(cost, limit)


def test_half_way_values_round_down_and_stop_at_the_border():
    image = np.array([[[10], [13], [2]]])
    low, high = problems.half_sample_range(image)
    assert low.ravel().tolist() == [10, 7, 2]
    assert high.ravel().tolist() == [11, 13, 7]


def test_tsukuba_doubles_the_weight_of_flat_edges(tsukuba):
    left = pair("tsukuba")[0]
    for axis, (down, right) in enumerate([(1, 0), (0, 1)]):
        weights = tsukuba.weights[axis]
        assert set(np.unique(weights)) == {1, 2}
        for i, j in some_sites(weights.shape):
            gradient = sum((a - b) ** 2 for a, b in zip(left[i][j], left[i + down][j + right], strict=True))
            assert weights[i, j] == (2 if gradient < 3 * 8**2 else 1)


def test_penguin_costs_are_squares_except_in_the_hole(penguin):
    grey, mask = (problems.picture(f"penguin/penguin-{name}.png").tolist() for name in ("input", "mask"))
    hole = np.argwhere(np.equal(mask, 0))
    assert len(hole) > 0 and not penguin.unary[tuple(hole.T)].any()
    for i, j in some_sites(penguin.shape):
        for level in (0, 1, 100, 255):
            assert penguin.unary[i, j, level] == (0 if mask[i][j] == 0 else (grey[i][j] - level) ** 2)


@numba.njit
def raster_icm(unary, table, down, across):
    """The original library's ICM: from the cheapest labels, site by site in reading order, the lowest of equal labels,
    until nothing changes."""
    rows, columns, labels = unary.shape
    x, costs, changed = np.empty((rows, columns), np.int64), np.empty(labels, np.int64), True
    for i in range(rows):
        for j in range(columns):
            x[i, j] = np.argmin(unary[i, j])
    while changed:
        changed = False
        for i in range(rows):
            for j in range(columns):
                costs[:] = unary[i, j]
                if i > 0:
                    costs += down[i - 1, j] * table[x[i - 1, j]]
                if i < rows - 1:
                    costs += down[i, j] * table[x[i + 1, j]]
                if j > 0:
                    costs += across[i, j - 1] * table[x[i, j - 1]]
                if j < columns - 1:
                    costs += across[i, j] * table[x[i, j + 1]]
                best = np.argmin(costs)
                changed |= best != x[i, j]
                x[i, j] = best
    return x


@pytest.mark.parametrize(
    ("name", "shape", "labels", "weight", "steps", "energy"),
    [
        ("tsukuba", (288, 384), 16, 20, [0, 1, 2, 2], 2_412_321),
        ("venus", (383, 434), 20, 50, [0, 1, 4, 7, 7], 12_347_398),
        ("penguin", (179, 122), 256, 25, [d * d for d in range(15)] + [200, 200], 20_393_445),
    ],
)
def test_icm_ends_where_the_original_library_does(name, shape, labels, weight, steps, energy, request):
    """The energies of ICM as the original C++ library (Szeliski et al. 2008) prints them."""
    mrf = request.getfixturevalue(name)
    assert mrf.shape == shape and mrf.n_labels == labels
    distance = np.abs(np.subtract.outer(np.arange(labels), np.arange(labels)))
    table = weight * np.array(steps)[np.minimum(distance, len(steps) - 1)]
    ones = np.ones((shape[0] - 1, shape[1])), np.ones((shape[0], shape[1] - 1))
    weights = [np.asarray(array, np.int64) for array in (ones if mrf.weights is None else mrf.weights)]
    assert mrf.energy(raster_icm(mrf.unary, table, *weights)) == energy
