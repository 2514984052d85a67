"""Images and label maps as files: one module per family of formats, and `image_formats`, which chooses by suffix."""
