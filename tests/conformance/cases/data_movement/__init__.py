"""Creation, layouts, shapes, slices and indices."""
