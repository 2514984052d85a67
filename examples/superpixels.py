"""Segment a picture by its superpixels: a few colours, and a region adjacency graph that says who is beside whom.

    python examples/superpixels.py regions.png --picture coffee

Needs scikit-image (the extra "demo").
"""

import argparse

import numpy as np
from PIL import Image
from scipy.cluster.vq import kmeans2
from skimage import color, data, graph, segmentation

import treefield as tf

PICTURES = ("astronaut", "chelsea", "coffee")  # these come with scikit-image


def superpixels(picture, size=150):
    """Superpixels of about so many pixels: their number at each pixel, and who is beside whom, a networkx graph."""
    lab = color.rgb2lab(picture)
    regions = segmentation.slic(picture, picture.shape[0] * picture.shape[1] // size, compactness=10, start_label=0)
    return lab, regions, graph.rag_mean_color(lab, regions)


def model(rag, colours, smoothness):
    """A label for each of the k-means colours. A node costs its pixels' distance from the label's colour; neighbours
    of different labels cost more the more alike they are."""
    means = np.array([node["mean color"] for _, node in rag.nodes(data=True)])
    pixels = np.array([node["pixel count"] for _, node in rag.nodes(data=True)])
    centres, _ = kmeans2(means, colours, minit="++", rng=0)
    distances = np.linalg.norm(means[:, None] - centres, axis=-1)
    contrast = np.mean([distance for _, _, distance in rag.edges(data="weight")])
    for _, _, edge in rag.edges(data=True):
        edge["likeness"] = np.exp(-((edge["weight"] / contrast) ** 2))
    unary = distances * (pixels / pixels.mean())[:, None]
    return tf.GraphMRF.from_networkx(rag, unary, tf.Potts(smoothness), weight="likeness")


def draw(picture, regions, rag, x):
    """The superpixels, and beside them each segment in its mean colour with its outline."""
    label_of = np.zeros(regions.max() + 1, int)
    label_of[list(rag)] = x  # site i is the i-th node
    labels = label_of[regions]
    segments = color.label2rgb(labels, picture, kind="avg", bg_label=-1)
    left = segmentation.mark_boundaries(picture, regions)
    right = segmentation.mark_boundaries(segments, labels)
    return np.round(255 * np.concatenate([left, right], axis=1)).astype(np.uint8)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", help="the picture to write")
    parser.add_argument("--picture", choices=PICTURES, default="coffee")
    parser.add_argument("--crop", type=int, help="only the middle so many rows and columns")
    parser.add_argument("--colours", type=int, default=8)
    parser.add_argument("--smoothness", type=float, default=10.0)
    given = parser.parse_args(arguments)

    picture = getattr(data, given.picture)()
    if given.crop:
        top, left = ((length - given.crop) // 2 for length in picture.shape[:2])
        picture = picture[top : top + given.crop, left : left + given.crop]
    _, regions, rag = superpixels(picture)
    mrf = model(rag, given.colours, given.smoothness)
    alone = mrf.energy(mrf.backend.best_labels())
    res = tf.minimize(mrf, rng=0)
    print(mrf)
    print(f"each superpixel alone {alone:.2f}, energy {res.fun:.2f}, bound {res.lower_bound:.2f}, gap {res.gap:.2g}")
    Image.fromarray(draw(picture, regions, rag, res.x)).save(given.output)


if __name__ == "__main__":
    main()
