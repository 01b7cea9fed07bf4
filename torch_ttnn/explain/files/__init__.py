"""The files of the page of `explain`; see `torch_ttnn.explain.page`."""
