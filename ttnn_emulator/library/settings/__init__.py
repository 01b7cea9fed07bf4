"""`ttnn.CONFIG`, and configs as plain data."""
