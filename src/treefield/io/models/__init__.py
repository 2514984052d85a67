"""Models as files: one module per format, and `model_formats`, which chooses by suffix."""
