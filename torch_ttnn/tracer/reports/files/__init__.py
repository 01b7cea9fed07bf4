"""The files of the pages of traces; see `torch_ttnn.tracer.reports.page`."""
