"""Matrix products: matmul and related operations, program selection, checks and circular buffers."""
