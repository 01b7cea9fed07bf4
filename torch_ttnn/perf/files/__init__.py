"""The files of the page of a profile; see `torch_ttnn.perf.page`."""
