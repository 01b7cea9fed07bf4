"""The files that pages of results are made of; see `torch_ttnn.results.site`."""
