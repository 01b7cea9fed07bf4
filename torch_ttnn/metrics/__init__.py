"""A model run both ways: by torch, and compiled for the device."""

from torch_ttnn.metrics.compare import Agreement, agreement, pcc, relative_error
from torch_ttnn.metrics.measure import Measurement, measure
from torch_ttnn.metrics.programs import Counts, counts
from torch_ttnn.metrics.timing import Times, elapsed, in_turns

__all__ = [
    "measure", "Measurement", "pcc", "relative_error", "agreement", "Agreement", "counts", "Counts", "in_turns",
    "elapsed", "Times",
]  # fmt: skip
