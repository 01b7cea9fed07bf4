"""The files that pages of traces are made of; see `torch_ttnn.tracer.reports.page`."""
