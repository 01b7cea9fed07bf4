"""Records which operations models use, at what sizes, with what arguments.

model = torch.compile(model, backend="torch_stat", options={"model_name": "resnet18"})
model(images).sum().backward()          # writes stat/raw/fw_resnet18_0.json and stat/raw/bw_resnet18_0.json

with torch_ttnn.tracer.tracing("resnet18"):
    model(images)                       # the same, without torch.compile
"""

from __future__ import annotations

from torch_ttnn.tracer.backend import backend
from torch_ttnn.tracer.context import tracing
from torch_ttnn.tracer.options import TracerOption
from torch_ttnn.tracer.records import BadTrace, Record, TensorFact, Trace, read, read_all

__all__ = ["BadTrace", "Record", "TensorFact", "Trace", "TracerOption", "backend", "read", "read_all", "tracing"]
