"""Names of the library about cards, meshes and their machinery."""
