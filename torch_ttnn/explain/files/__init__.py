"""The files that the page of `explain` is made of; see `torch_ttnn.explain.page`."""
