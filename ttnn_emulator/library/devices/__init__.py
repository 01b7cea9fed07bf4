"""Names of the library for cards, meshes and their firmware."""
