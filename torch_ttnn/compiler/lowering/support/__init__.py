"""What several lowerings share. Nothing here registers a lowering."""
