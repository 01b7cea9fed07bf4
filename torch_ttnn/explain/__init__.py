"""`torch_ttnn.explain`: how a model is compiled, as data, as text and as a page."""

from torch_ttnn.capture.programs import capture
from torch_ttnn.explain.explanation import Explanation, explain, explanation_of

__all__ = ["Explanation", "capture", "explain", "explanation_of"]
