"""`torch_ttnn.check`: checks every call of a program with the real `ttnn` on a mock card.

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
