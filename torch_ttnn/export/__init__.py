"""`torch_ttnn.export_code`: a compiled model as a standalone script."""

from torch_ttnn.export.scripts import Exported, export_code, export_program

__all__ = ["Exported", "export_code", "export_program"]
