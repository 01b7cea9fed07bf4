"""Reports of compiled programs: their data, and the same as text, as JSON and as one page of HTML."""

from __future__ import annotations

from torch_ttnn.report.data import FusionView, HostOp, Move, NodeView, ProgramReport, Report, describe

__all__ = ["FusionView", "HostOp", "Move", "NodeView", "ProgramReport", "Report", "describe"]
