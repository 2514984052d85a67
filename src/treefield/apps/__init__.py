"""Applications: arrays in, arrays out. Each builds a model, minimises it, and says what the labels mean."""
