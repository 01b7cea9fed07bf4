"""A model run both ways: by torch, and compiled for the device."""

from torch_ttnn.metrics.compare import pcc, relative_error
from torch_ttnn.metrics.measure import Measurement, measure

__all__ = ["Measurement", "measure", "pcc", "relative_error"]
