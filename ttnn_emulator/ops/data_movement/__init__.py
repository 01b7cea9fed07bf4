"""Changes of layout, dtype, shape and memory; joining and splitting tensors."""
