"""Images, label maps and models as files.

The packages that decode images are imported when a file needs them, so that a program without them can still load and
save models, and `import treefield.io` stays light.
"""

from treefield.io.images import read_image, read_labels, write_image, write_labels
from treefield.io.models import load_model, save_model

__all__ = ["load_model", "read_image", "read_labels", "save_model", "write_image", "write_labels"]
