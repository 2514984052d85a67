"""Makes the pictures of these pages, in docs/images: ``make pictures``."""

import pathlib
import sys

import numpy as np
from skimage import color, data

import treefield as tf
from treefield.cli.previews import draw_disparities, draw_regions
from treefield_reproduce.experiments import run_experiment
from treefield_reproduce.problems import ising_field
from treefield_reproduce.runner import QUICK, Runner

IMAGES = pathlib.Path(__file__).resolve().parent / "images"
TIME_LIMIT = 20


def denoise():
    """A photograph with Gaussian noise and salt and pepper; the same in colour."""
    rng = np.random.default_rng(0)
    grey = data.camera()[60:316, 90:346]
    noisy = np.clip(np.round(rng.normal(grey, 15)), 0, 255).astype(np.uint8)
    dice = rng.random(grey.shape)
    noisy[dice < 0.04], noisy[dice > 0.96] = 0, 255
    colour = data.coffee()[40:296, 150:406]
    grainy = np.clip(np.round(rng.normal(colour, 25)), 0, 255).astype(np.uint8)
    save("denoise", noisy, tf.denoise(noisy, rng=0), grainy, tf.denoise(grainy, channel_axis=-1, rng=0))


def inpaint():
    """Scratches, and a word."""
    rng = np.random.default_rng(1)
    image = data.chelsea()[:, 60:420]
    mask = np.zeros(image.shape[:2], bool)
    for _ in range(14):
        row, column, slope = rng.integers(10, 290), rng.integers(0, 200), rng.uniform(-0.4, 0.4)
        for step in range(150):
            mask[int(np.clip(row + slope * step, 2, 297)) - 2 :][:4, column + step] = True
    mask[130:165, 150:200] = True
    spoiled = np.where(mask[..., None], np.uint8([220, 40, 40]), image).astype(np.uint8)
    save("inpaint", spoiled, tf.inpaint(image, mask, channel_axis=-1, time_limit=TIME_LIMIT, rng=0), image)


def stereo():
    """The motorcycle: left image, result, occlusions marked, truth."""
    left, right, truth = data.stereo_motorcycle()
    left, right = left[..., :3], right[..., :3]
    given = {"num_disparities": 64, "channel_axis": -1, "time_limit": TIME_LIMIT, "rng": 0}
    found = tf.stereo(left, right, **given)
    marked = tf.stereo(left, right, occlusion="mark", subpixel=True, **given)
    truth = np.where(np.isfinite(truth) & (truth > 0), truth, np.nan)
    maps = [draw_disparities(disparity.astype(np.float32), 0, 64) for disparity in (found, marked, truth)]
    save("stereo", *(image[::2, ::2] for image in (left, *maps)))


def segment():
    """Regions by colour, and a cup cut out by strokes."""
    image = data.coffee()
    by_colour = color.label2rgb(tf.segment(image, 5, channel_axis=-1, rng=0), image, kind="avg", bg_label=-1)
    seeds = np.zeros(image.shape[:2], np.int32)
    seeds[60:180, 215:370], seeds[200:300, 110:440], seeds[330:350, 150:380] = 1, 1, 1
    seeds[:20], seeds[-8:], seeds[:, :40], seeds[:, -40:] = 2, 2, 2, 2
    cup = tf.segment(image, seeds, channel_axis=-1, rng=0)
    strokes = np.where((seeds > 0)[..., None], 0.4 * image + 0.6 * draw_regions(seeds), image)
    save(
        "segment",
        *(part[::2, ::2] for part in (image, by_colour, strokes, np.where((cup == 1)[..., None], image, 255))),
    )


def ising():
    """A ferromagnet in a random field, and a spin glass."""
    rng = np.random.default_rng(0)
    n = 200
    fields = rng.normal(size=(n, n))
    couplings = [rng.uniform(-1, 1, shape) for shape in ((n - 1, n), (n, n - 1))]
    found = [tf.ising(fields, coupling, time_limit=3, rng=0) for coupling in (-0.5, -1.0, couplings)]
    save("ising-fields", *(np.where(spins > 0, 255, 0) for spins in (np.where(fields < 0, 1, -1), *found)))


def explained():
    """Figures 1 to 3 of the paper: two passes, conditional trees, basin hopping."""
    trees = run_experiment("trees", Runner(QUICK))
    for name in ("two-passes", "conditional-trees", "basin-hopping"):
        (IMAGES / f"{name}.png").write_bytes(trees.files[f"{name}.png"])


def ribbons():
    """A tree, a comb and a ribbon inside a grid; energies of sweeps over ribbons."""
    import matplotlib.pyplot as plt

    rows, columns = 9, 14
    sites = [(i, j) for i in range(rows) for j in range(columns)]
    comb = {(i, j) for i, j in sites if i % 2 == 0 or j == 0}
    ribbon = {(i, j) for i, j in sites if 3 <= i < 7}
    profile = {(i, j) for i, j in ribbon if (j == 6 and i > 4) or (j == 7 and i <= 4)}
    figure, axes = plt.subplots(1, 4, figsize=(15, 2.9), width_ratios=[1, 1, 1, 1.25], layout="constrained")
    panels = {"a row": {(4, j) for j in range(columns)}, "a comb": comb, "a ribbon of 4 rows": ribbon}
    for axis, (title, tree) in zip(axes, panels.items(), strict=False):
        for i, j in sites:
            for there in ((i, j + 1), (i + 1, j)):
                if (i, j) in tree and there in tree:
                    axis.plot([j, there[1]], [i, there[0]], color="#1f4e9c", lw=1.5, zorder=1)
        marked = profile if tree == ribbon else set()
        for group, fill, edge in (
            (set(sites) - tree, "#b8bcc4", "#b8bcc4"),
            (tree - marked, "white", "#1f4e9c"),
            (marked, "#e08e45", "#1f4e9c"),
        ):
            axis.scatter([j for _, j in group], [i for i, _ in group], s=30, color=fill, edgecolors=edge, zorder=2)
        axis.set(title=title, aspect="equal")
        axis.invert_yaxis()
        axis.axis("off")
    mrf, least = ising_field(), -239_500.5735
    for width in (1, 2, 4, 6, 8, 10):
        trees, rng = mrf.backend.tree_set("ribbons", width=width), np.random.default_rng(0)
        x = mrf.backend.random_labels(rng)
        energies = [mrf.energy(x) for _ in range(12) if trees.sweep(x, rng) <= 0]
        axes[3].semilogy(range(1, 13), np.array(energies) - least, marker=".", label=f"{width}")
    axes[3].set(title="Ising 500x500: energy above the least known", xlabel="sweeps", ylim=(0.1, 1e5))
    axes[3].legend(title="width", fontsize=8, ncols=2, loc="upper right", bbox_to_anchor=(1.35, 1))
    figure.savefig(IMAGES / "ribbons.png", dpi=90)


def save(name, *images):
    """Images of the same height side by side, as one PNG."""
    images = [np.stack([image] * 3, axis=-1) if image.ndim == 2 else image for image in images]
    gap = np.full((images[0].shape[0], 6, 3), 255)
    row = [part for image in images for part in (gap, image)][1:]
    tf.io.write_image(IMAGES / f"{name}.png", np.concatenate(row, axis=1).astype(np.uint8), force=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or ("denoise", "inpaint", "stereo", "segment", "ising", "ribbons", "explained"):
        globals()[name]()
