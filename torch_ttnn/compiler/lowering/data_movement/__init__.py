"""Lowerings of views, slices, joins, gather and scatter."""
