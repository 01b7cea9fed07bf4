"""`ttnn.tracer` and its relatives: traced calls as graphs, code, pictures and files."""
