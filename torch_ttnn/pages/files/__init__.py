"""The files that all our pages share; see `torch_ttnn.pages.assembly`."""
