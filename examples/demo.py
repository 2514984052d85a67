"""Denoise a picture made here: scan-line, then ICM, T-ICM, T-ILS and `minimize` from there. Writes pictures and
energies to a folder."""

import argparse
import json
import pathlib
import time

import numpy as np

import treefield as tf
from treefield.moves import MixedJump, PerComponent

LEVELS = 16


def picture(height=240, width=320):
    """A landscape of flat shapes in 16 grey levels."""
    y, x = np.mgrid[:height, :width] / height
    image = np.where(y < 0.62, 11 - 3 * np.floor(2 * y), 5.0)
    image[(x - 1.02) ** 2 + (y - 0.2) ** 2 < 0.012] = 15
    for left, top, level in ((0.08, 0.3, 2), (0.24, 0.42, 7), (0.42, 0.22, 3), (0.62, 0.38, 9), (0.8, 0.48, 1)):
        image[(x > left) & (x < left + 0.13) & (y > top) & (y < 0.62)] = level
    image[y > 0.72 + 0.05 * np.sin(7 * x)] = 3
    image[(np.abs(x - 0.66) < 0.3 * (y - 0.6)) & (y > 0.62)] = 8
    return image


def search(mrf, x0):
    """T-ILS with the best jumps and acceptance."""
    return tf.t_ils(mrf, x0, jump=MixedJump(), accept=PerComponent(), trees="bands", maxiter=200, rng=0)


def minimize(mrf, x0):
    """The best there is, with a proof of how good it is."""
    return tf.minimize(mrf, x0, rng=0)


def main():
    """Make the picture, spoil it, restore it, tell how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("demo-output"), help="folder to write to")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    rng = np.random.default_rng(0)
    truth = picture()
    noisy = np.clip(truth + rng.normal(0, 2, truth.shape), 0, LEVELS - 1)
    spoiled = rng.random(truth.shape) < 0.1
    noisy[spoiled] = rng.uniform(0, LEVELS - 1, spoiled.sum())

    unary = np.minimum(np.abs(noisy[:, :, None] - np.arange(LEVELS)), 6).astype(np.float32)
    mrf = tf.GridMRF(unary, tf.Potts(3.0))
    runs = {"each site": tf.t_icm(mrf, "unary", maxiter=0), "scan-line": tf.scan_line(mrf, nu=0.4)}
    for name, solve in (("ICM", tf.icm), ("T-ICM", tf.t_icm), ("T-ILS", search), ("minimize", minimize)):
        started = time.perf_counter()
        runs[name] = solve(mrf, "scan-line")
        print(f"{name} took {time.perf_counter() - started:.2f} s, compilation included")

    print(f"\n{'':10}{'energy':>12}{'bound':>12}{'gap':>10}{'iterations':>12}{'ms':>8}{'wrong sites':>13}")
    report = {}
    for name, res in runs.items():
        wrong = float(np.mean(res.x != truth))
        milliseconds = 1e3 * res.trace["seconds"][-1]
        report[name] = {"energy": res.fun, "iterations": res.nit, "milliseconds": milliseconds, "wrong": wrong}
        proved = " " * 22
        if res.lower_bound == res.lower_bound:  # no nan: there is a bound
            report[name] |= {"bound": res.lower_bound, "gap": res.gap}
            proved = f"{res.lower_bound:12,.0f}{res.gap:10.4%}"
        print(f"{name:10}{res.fun:12,.0f}{proved}{res.nit:12}{milliseconds:8.1f}{wrong:12.1%}")
    (out / "energies.json").write_text(json.dumps(report, indent=2) + "\n")
    draw(out, {"noisy": noisy, **{name: runs[name].x for name in ("scan-line", "ICM", "T-ICM", "minimize")}})
    print(f"\nPictures and energies are in {out.resolve()}")


def draw(out, images):
    """Each picture by itself, and all side by side."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for name, image in images.items():
        plt.imsave(out / f"{name.lower()}.png", image, cmap="gray", vmin=0, vmax=LEVELS - 1)
    figure, axes = plt.subplots(1, len(images), figsize=(15, 2.6))
    for ax, (name, image) in zip(axes, images.items(), strict=True):
        ax.imshow(image, cmap="gray", vmin=0, vmax=LEVELS - 1, interpolation="nearest")
        ax.set_title(name)
        ax.axis("off")
    figure.tight_layout()
    figure.savefig(out / "before-after.png", dpi=80)


if __name__ == "__main__":
    main()
