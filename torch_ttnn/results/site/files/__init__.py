"""The files of the pages of results; see `torch_ttnn.results.site`."""
