"""Denoising of many pictures with many noises, next to scikit-image's total variation and non-local means."""

import collections

import numpy as np

import treefield as tf
from measure import say, table
from peers import imported

PICTURES = (
    *("camera", "coffee", "astronaut", "page", "text", "coins", "moon"),
    *("brick", "grass", "gravel", "horse", "retina", "rocket", "cat"),
)
UNSEEN = (
    *("cell", "clock", "colorwheel", "grace_hopper", "hubble_deep_field", "immunohistochemistry"),
    *("microaneurysms", "shepp_logan_phantom", "stereo_motorcycle"),
)
SIGMAS = (5, 10, 20, 40, 60)
WEIGHTS = np.geomspace(0.01, 0.6, 15)  # of total variation: the best for each picture and noise, given the truth
LONGEST = 512  # pixels: larger pictures are cropped


def pictures():
    """PSNR and SSIM of noisy and restored pictures: means for each noise, and the worst loss to the input."""
    compare(PICTURES)


def unseen():
    """The same of pictures that no parameter and no threshold of `denoise` was chosen with."""
    compare(UNSEEN)


def compare(names):
    """Print the table of some pictures."""
    skimage = imported("skimage", "scikit-image")
    if skimage is None:
        return
    rows, worst, clean_worst = [], (np.inf, ""), (np.inf, "")
    for noise in noises():
        scores = collections.defaultdict(list)
        for name in names:
            clean = grey_picture(name)
            noisy = add_noise(clean, noise, seed=len(name))
            answers = {"input": noisy, "treefield": tf.denoise(noisy, rng=0)}
            if noise.startswith("Gaussian"):
                answers |= peers(noisy, clean, float(noise.split()[1]))
            for method, image in answers.items():
                scores[method].append(quality(image, clean))
            restored = min(99.0, scores["treefield"][-1][0])
            if noise == "none":
                clean_worst = min(clean_worst, (restored, name))
            else:
                worst = min(worst, (restored - scores["input"][-1][0], f"{name}, {noise}"))
            print(f"{noise}, {name}: " + ", ".join(f"{m} {s[-1][0]:.2f} {s[-1][1]:.3f}" for m, s in scores.items()))
        rows.append([noise, *(format_scores(scores[m]) for m in ("input", "treefield", "TV", "NLM"))])
    table(
        f"PSNR (dB) and SSIM, means over {len(names)} pictures", ["noise", "input", "treefield", "best TV", "NLM"], rows
    )
    say(f"The least gain of a noisy picture: {worst[0]:.2f} dB ({worst[1]}).")
    say(f"Clean pictures come back at {clean_worst[0]:.2f} dB or more (99 is unchanged): {clean_worst[1]}.")


def noises():
    """The noises by name."""
    gaussian = [f"Gaussian {sigma}" for sigma in SIGMAS]
    return ["none", *gaussian, "salt and pepper 5 %", "salt and pepper 20 %", "both", "Poisson"]


def grey_picture(name):
    """One of scikit-image's pictures, or Matplotlib's photograph, as 8-bit grey levels."""
    from skimage import color, data

    image = matplotlib_photograph() if name == "grace_hopper" else getattr(data, name)()
    image = image[0] if isinstance(image, tuple) else image
    if image.dtype.kind == "f":
        image = 255 * image
    if image.ndim == 3:
        image = 255 * color.rgb2gray(image[..., :3])
    elif image.dtype == bool:
        image = 255 * image
    return np.round(image[:LONGEST, :LONGEST]).astype(np.uint8)


def matplotlib_photograph():
    from matplotlib import cbook, image

    return image.imread(cbook.get_sample_data("grace_hopper.jpg"))


def add_noise(clean, noise, seed):
    """The picture with a noise, 8 bits."""
    rng = np.random.default_rng(seed)
    values = clean.astype(float)
    if noise == "both":
        values += rng.normal(0, 15, clean.shape)
    if noise.startswith("Gaussian"):
        values += rng.normal(0, float(noise.split()[1]), clean.shape)
    if noise == "Poisson":
        values = rng.poisson(values / 4) * 4.0
    if "pepper" in noise or noise == "both":
        share = 0.1 if noise == "both" else float(noise.split()[-2]) / 100
        values = np.where(rng.random(clean.shape) < share, 255.0 * rng.integers(0, 2, clean.shape), values)
    return np.clip(np.round(values), 0, 255).astype(np.uint8)


def peers(noisy, clean, sigma):
    """The picture restored by scikit-image: total variation with its best weight, non-local means given sigma."""
    from skimage.restoration import denoise_nl_means, denoise_tv_chambolle

    image = noisy / 255
    best = max((255 * denoise_tv_chambolle(image, weight) for weight in WEIGHTS), key=lambda x: quality(x, clean)[0])
    options = {"patch_size": 5, "patch_distance": 6, "fast_mode": True}
    return {"TV": best, "NLM": 255 * denoise_nl_means(image, h=0.8 * sigma / 255, sigma=sigma / 255, **options)}


def quality(image, clean):
    """PSNR and SSIM of an image in grey levels."""
    from skimage.metrics import structural_similarity

    error = float(np.mean((image - clean.astype(float)) ** 2))
    ssim = structural_similarity(np.asarray(image, float), clean.astype(float), data_range=255)
    return (10 * np.log10(255**2 / error) if error else np.inf), ssim


def format_scores(scores):
    """Means over the pictures; an equal picture counts as 99 dB."""
    if not scores:
        return ""
    return f"{np.mean([min(psnr, 99.0) for psnr, _ in scores]):.2f}, {np.mean([ssim for _, ssim in scores]):.3f}"
