"""Reports for ttnn-visualizer."""
