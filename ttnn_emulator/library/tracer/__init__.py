"""`ttnn.tracer` and related modules: traced calls as graphs, code, diagrams and files."""
