"""`TtnnTensor`: a torch tensor whose values are on a device called `ttnn`."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch
from torch._C._dynamo import eval_frame

from torch_ttnn.compiler.errors import GraphBreakWarning
from torch_ttnn.eager.storage import Storage
from torch_ttnn.eager.views import WHOLE, Chain, Geometry

# torch's Python backends have one device guard, for index 0: the autograd engine has no queue for another index. So all
# tensors have index 0 in C++, and `TtnnTensor.device` has the index of their board.
ENGINE_DEVICE = torch.device("ttnn", 0)
_make = torch.Tensor._make_wrapper_subclass  # type: ignore[attr-defined]


class TtnnTensor(torch.Tensor):
    """A storage on the device, and the chain of views that leads from it to this tensor."""

    _held: Storage
    _chain: Chain

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, geometry: Geometry, held: Storage, chain: Chain = WHOLE) -> TtnnTensor:
        return tensor_of(geometry, held, chain)

    def __init__(self, *_: Any) -> None:
        super().__init__()  # attributes are set by `tensor_of`

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        callback = eval_frame.set_eval_frame(None)  # Dynamo must not capture our own code
        try:
            if callable(callback):
                _warn_of_eager_mode()
            return run(func, args, kwargs or {})
        finally:
            eval_frame.set_eval_frame(callback)

    def __coerce_same_metadata_as_tangent__(self, metadata: Any, kind: Any = None) -> TtnnTensor:
        """AOTAutograd captures gradients as plain tensors of the device."""
        return self

    # -- what C++ does not know -------------------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self._held.board.device

    def get_device(self) -> int:
        return self._held.board.index

    @property
    def data(self) -> torch.Tensor:  # type: ignore[override]
        return self.detach()

    @data.setter
    def data(self, other: torch.Tensor) -> None:
        replace_values(self, other)

    def to(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """torch's `to`; C++ takes every tensor on `ttnn` for one on `ttnn:0`."""
        wanted = _wanted_device(args, kwargs) if self._held.board.index else None
        if wanted is None or wanted.type != "ttnn":
            return super().to(*args, **kwargs)
        if (wanted.index or 0) == self._held.board.index and len(args) + len(kwargs) == 1:
            return self
        moved = _BetweenBoards.apply(self, wanted) if not wanted.index else self
        return torch.Tensor.to(moved, *args, **kwargs)

    def new_tensor(self, data: Any, **options: Any) -> torch.Tensor:  # type: ignore[override]
        return torch.tensor(data, **{"dtype": self.dtype, "device": self.device, **options})

    def data_ptr(self) -> int:
        raise RuntimeError("a tensor on ttnn has no address on the host; .cpu() copies it there")

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.detach().cpu().numpy(force=True)
        raise TypeError(
            "can't convert a ttnn device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
            "first."
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        from torch_ttnn.eager.printing import text_of

        return text_of(self)

    def __format__(self, spec: str) -> str:
        return self.item().__format__(spec) if self.dim() == 0 else object.__format__(self, spec)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from torch_ttnn.eager.saving import reduced

        return reduced(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> TtnnTensor:
        from torch_ttnn.eager.saving import deep_copy

        return deep_copy(self, memo)


def tensor_of(geometry: Geometry, held: Storage, chain: Chain = WHOLE) -> TtnnTensor:
    tensor = _make(
        TtnnTensor, geometry.size, strides=geometry.stride, storage_offset=geometry.offset, dtype=geometry.dtype,
        device=ENGINE_DEVICE,
    )  # fmt: skip
    tensor._held = held
    tensor._chain = chain
    return tensor


def whole_of(held: Storage) -> TtnnTensor:
    """The tensor that covers a storage."""
    return tensor_of(Geometry(held.size, held.stride, 0, held.dtype), held)


def _wanted_device(args: tuple, kwargs: dict[str, Any]) -> torch.device | None:
    given = kwargs.get("device", kwargs.get("other", args[0] if args else None))
    if isinstance(given, TtnnTensor):
        return given.device
    return torch.device(given) if isinstance(given, str | int | torch.device) and not isinstance(given, bool) else None


class _BetweenBoards(torch.autograd.Function):
    """A copy on another board; the gradient returns to the first."""

    @staticmethod
    def forward(context: Any, tensor: TtnnTensor, device: torch.device) -> torch.Tensor:
        context.source = tensor.device
        return torch.ops.aten._to_copy(tensor, device=device)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        return torch.ops.aten._to_copy(gradient, device=context.source), None


def replace_values(tensor: TtnnTensor, other: torch.Tensor) -> None:
    """`tensor.data = other`: the tensor becomes a view of the other's storage."""
    if not isinstance(other, TtnnTensor):
        raise RuntimeError(
            f"tensor.data of a tensor on {tensor.device} takes another one there, not one on {other.device}; "
            "tensor.data.copy_(other) copies values, and module.to(device) moves a module"
        )
    become(tensor, other)


def become(tensor: TtnnTensor, other: TtnnTensor) -> None:
    """Change a tensor, in place, into a view of the other's storage."""
    torch.Tensor.data.__set__(tensor, other)  # type: ignore[attr-defined]  # sizes, strides and dtype
    tensor._held, tensor._chain = other._held, other._chain


def run(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run an operation; `kernels` puts `handlers.run` here, because handlers import this module."""
    from torch_ttnn.eager.device import kernels

    return kernels.handlers.run(function, args, kwargs)


@functools.cache
def _warn_of_eager_mode() -> None:
    warnings.warn(
        "Dynamo does not capture operations on tensors of the device 'ttnn' for this backend: they run one by one on "
        "the device, in eager mode. `import torch_ttnn.backend` before torch.compile is called makes it capture them.",
        GraphBreakWarning,
        stacklevel=3,
    )


eval_frame.set_code_exec_strategy(
    TtnnTensor.__torch_dispatch__.__code__,
    eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT),
)
