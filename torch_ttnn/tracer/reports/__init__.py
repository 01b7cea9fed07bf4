"""`torch-ttnn report`: tables, histograms, pages and a Parquet file from a folder of traces."""

from torch_ttnn.tracer.reports.generation import generate

__all__ = ["generate"]
