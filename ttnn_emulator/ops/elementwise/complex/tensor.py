"""Complex tensors as pairs of real and imaginary tensors."""

from __future__ import annotations

from ttnn_emulator.api.binding import TYPES
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite
from ttnn_emulator.tensors.tensor import Tensor


class ComplexTensor:
    """A real and an imaginary part; operations check that they match."""

    __slots__ = ("real", "imag")

    def __init__(self, real: Tensor, imag: Tensor) -> None:
        self.real = real
        self.imag = imag

    def __getitem__(self, part: int) -> Tensor:
        """0 is the real part, 1 the imaginary one. The library aborts the process for any other number."""
        if part.__class__ is not int:
            raise TypeError(f"a part of a complex tensor has the number 0 or 1, not {part!r}")
        require(part in (0, 1), f"a complex tensor has parts 0 and 1, not {part}")
        return (self.real, self.imag)[part]

    def deallocate(self, force: bool = False) -> None:
        self.real.deallocate(force)
        self.imag.deallocate(force)


TYPES.register("ComplexTensor", ComplexTensor)


@composite("ttnn.complex_tensor")
def complex_tensor(real: Tensor, imag: Tensor) -> ComplexTensor:
    """A complex tensor of two real ones."""
    return ComplexTensor(real, imag)
