"""`torch_ttnn.check`: every call of a program put to the real `ttnn`, on a mock card.

`python -m torch_ttnn.check` does the same for models of the zoo and any number of releases.
"""

from torch_ttnn.check.checker import (
    DIFFERENT,
    REJECTED,
    Check,
    Checker,
    Finding,
    NoRealTtnn,
    check,
    check_programs,
    real_python,
)

__all__ = [
    "DIFFERENT",
    "REJECTED",
    "Check",
    "Checker",
    "Finding",
    "NoRealTtnn",
    "check",
    "check_programs",
    "real_python",
]
