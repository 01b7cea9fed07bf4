"""Programs that exchange data between chips."""
