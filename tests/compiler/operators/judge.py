"""Compares a compiled call of an operator with torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
import torch.utils._pytree as pytree
from torch._decomp import core_aten_decompositions
from torch.utils._python_dispatch import TorchDispatchMode

from tests.compiler.operators.samples import SEED, Call
from torch_ttnn.backend import backend

HALF_STEP = 2.0**-9  # relative, of bfloat16, the device's dtype of floats
PERTURBATIONS = 8
# An error may be this multiple of the effect of a perturbation of the inputs, plus a share of the value and of
# the largest value: intermediate values are rounded too.
TIMES, SHARE, SHARE_OF_LARGEST = 8.0, 2.0**-6, 2.0**-7
# Where terms cancel, rounding errors remain: for each element, at most this multiple of the error of torch with every
# intermediate result rounded to bfloat16.
TIMES_ROUNDING = 2.0
SMALLEST = 1e-11  # kernels of erfc and the like come that close to zero
GRADIENT_FORMULAS = {
    operator: formula
    for operator, formula in core_aten_decompositions().items()
    if operator._schema.name.endswith("_backward")
}


class Difference(AssertionError):
    """The result of the compiled call differs from torch's."""


class OtherStrides(Difference):
    """The strides differ from torch's; values may be correct."""


def compiled(call: Call, tensors: Sequence[torch.Tensor], *, using: Callable[..., Any] | None = None) -> Any:
    """Run the call as a graph of one node, through the backend on the emulated device, or `using` another backend.

    Dynamo is bypassed: it takes most of the time, and would pass such a graph to the backend.
    """
    graph = torch.fx.Graph()
    inputs = [graph.placeholder(f"x{number}") for number in range(len(tensors))]
    made = graph.call_function(call.function, tuple(inputs))
    shapes: list[Any] = []

    def flat(result: Any) -> tuple:
        leaves, tree = pytree.tree_flatten(result)
        shapes[:] = [tree]
        return tuple(leaves)

    graph.output(graph.call_function(flat, (made,)))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    if using is None:
        function = backend(module, list(tensors), options={"device": "emulator", "warn": False})
    else:
        function = using(module, list(tensors))
    torch.manual_seed(SEED)
    return pytree.tree_unflatten(list(function(*tensors)), shapes[0])


@dataclass(frozen=True)
class Backward:
    """What is differentiated in a call: some of its tensors, for these gradients of its outputs."""

    call: Call
    places: tuple[int, ...]
    seeds: tuple[torch.Tensor, ...]

    @classmethod
    def of(cls, call: Call) -> Backward | None:
        """All floating-point tensors, or the first if torch does not differentiate others (the weights of a loss)."""
        floats = tuple([place for place, each in enumerate(call.tensors) if each.is_floating_point()])
        for places in (floats, floats[:1]):
            try:
                found = cls(call, places, _seeds(call, places))
                found.as_call().eager()
            except Exception:  # torch rejects the call or has no gradient
                continue
            return found
        return None

    def gradients(
        self, tensors: Sequence[torch.Tensor], seeds: Sequence[torch.Tensor], run: Callable[..., Any]
    ) -> tuple[torch.Tensor | None, ...]:
        given = _leaves_of_autograd(tensors, self.places)
        outputs = _differentiable(run(given))
        of_outputs = [seed.to(each.dtype) for seed, each in zip(seeds, outputs, strict=True)]
        return torch.autograd.grad(outputs, [given[place] for place in self.places], of_outputs, allow_unused=True)

    def as_call(self) -> Call:
        """torch's gradients, as a call of its tensors and of the gradients of its outputs."""
        count = len(self.call.tensors)

        def function(*tensors: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
            return self.gradients(tensors[:count], tensors[count:], lambda given: self.call(*given))

        return Call(function, (*self.call.tensors, *self.seeds), self.call.text)


def _seeds(call: Call, places: Sequence[int]) -> tuple[torch.Tensor, ...]:
    """Random gradients of the outputs."""
    outputs = _differentiable(call(*_leaves_of_autograd(call.tensors, places)))
    generator = torch.Generator().manual_seed(1)
    return tuple([torch.randn(each.shape, generator=generator).to(each.dtype) for each in outputs])


def _leaves_of_autograd(tensors: Sequence[torch.Tensor], places: Sequence[int]) -> list[torch.Tensor]:
    return [each.detach().clone().requires_grad_(place in places) for place, each in enumerate(tensors)]


def _differentiable(result: Any) -> list[torch.Tensor]:
    return [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor) and each.requires_grad]


def perturbed(tensor: torch.Tensor, number: int) -> torch.Tensor:
    """Floats perturbed by up to two half steps of bfloat16; number 0 rounds them to bfloat16."""
    if not tensor.is_floating_point():
        return tensor
    if number == 0:
        return tensor.to(torch.bfloat16).to(tensor.dtype)
    generator = torch.Generator().manual_seed(number)
    noise = (torch.rand(tensor.shape, generator=generator) - 0.5) * 4 * HALF_STEP
    if number % 2:
        noise = noise.sign() * 2 * HALF_STEP
    return (tensor.double() * (1 + noise)).to(tensor.dtype)


def wide(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """float32 in place of bfloat16: the reference is not rounded in between."""
    return tuple(each.float() if each.dtype is torch.bfloat16 else each for each in tensors)


def references(call: Call) -> list[list[Any]]:
    """torch's results: for the tensors in float32, then for perturbed ones; leaves of outputs and inputs."""
    found = []
    for number in range(-1, PERTURBATIONS):
        given = wide(call.tensors)
        if number >= 0:
            given = tuple(perturbed(each, number) for each in given)
        try:
            found.append(_leaves(call.eager(given)))
        except Exception:  # the float32 form of a bfloat16 call may not exist, and a perturbed matrix may be singular
            if number < 0:
                found.append(_leaves(call.eager()))
    if not any(each.is_floating_point() for each in call.tensors):
        found += _of_integers_as_floats(call, found[0])
    return found


def _of_integers_as_floats(call: Call, first: list[Any]) -> list[list[Any]]:
    """Perturb integers that torch casts to floats."""
    found = []
    for number in range(PERTURBATIONS):
        try:
            made = _leaves(call.eager(tuple(perturbed(each.float(), number) for each in call.tensors)))
        except Exception:  # it takes integers only
            return []
        if len(made) == len(first):
            found.append([a if getattr(b, "dtype", None) is torch.float32 else b for a, b in zip(made, first)])
    return found


def _leaves(pair: tuple[Any, tuple]) -> list[Any]:
    outputs, after = pair
    return [*pytree.tree_leaves(outputs), *after]


def require_like(
    call: Call, got: Any, after: Sequence[torch.Tensor], *, strides: bool = True, cancels: bool = False
) -> None:
    """Compare outputs, and inputs after the call, with torch's; raise `Difference` if they differ.

    cancels  whether intermediate results may cancel: a difference is then compared, element by element, with the errors
             that torch makes if it rounds every intermediate result to bfloat16
    """
    try:
        _require_like(call, got, after, strides, roundings=None)
    except Difference:
        if not cancels:
            raise
        _require_like(call, got, after, strides, errors_of_rounding(call))


class Rounded(TorchDispatchMode):
    """Changes the results of every operation of torch as rounding to bfloat16 does, and keeps their dtype.

    Without a seed it rounds them; with one, it moves each by half a step up or down at random: rounding may happen to
    be exact where the device, which rounds in other places, is not.
    Gradients that torch computes in one operation are decomposed, so that their intermediate results are rounded too.
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__()
        self._generator = None if seed is None else torch.Generator().manual_seed(seed)

    def _rounded(self, exact: torch.Tensor) -> torch.Tensor:
        if self._generator is None:
            return exact.bfloat16()
        up = torch.rand(exact.shape, generator=self._generator) < 0.5
        return exact * torch.where(up, 1 + HALF_STEP, 1 - HALF_STEP)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func in GRADIENT_FORMULAS:
            with self:
                return GRADIENT_FORMULAS[func](*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        for made, returned in zip(pytree.tree_leaves(result), func._schema.returns):
            is_view = returned.alias_info is not None and not returned.alias_info.is_write
            if isinstance(made, torch.Tensor) and made.dtype is torch.float32 and not is_view:
                made.copy_(self._rounded(made))
        return result


def errors_of_rounding(call: Call) -> list[torch.Tensor | None]:
    """The largest error of each element if torch rounds every intermediate result to bfloat16."""
    found: list[torch.Tensor | None] = []
    for number in range(PERTURBATIONS):
        given = tuple([perturbed(perturbed(each, number), 0) for each in wide(call.tensors)])
        exact = _leaves(call.eager(given))
        for rounding in (Rounded(), Rounded(number)):
            with rounding:
                rounded = _leaves(call.eager(given))
            errors = [_error(*each) for each in zip(rounded, exact, strict=True)]
            found = [_larger(one, other) for one, other in zip(found, errors)] if found else errors
    return found


def _error(narrow: Any, exact: Any) -> torch.Tensor | None:
    is_float = isinstance(narrow, torch.Tensor) and narrow.is_floating_point() and narrow.shape == exact.shape
    return (narrow.double() - exact.double()).abs().nan_to_num(0.0, 0.0, 0.0) if is_float else None


def _larger(one: torch.Tensor | None, other: torch.Tensor | None) -> torch.Tensor | None:
    return None if one is None or other is None else torch.maximum(one, other)


def _require_like(
    call: Call, got: Any, after: Sequence[torch.Tensor], strides: bool, roundings: list[Any] | None
) -> None:
    eager = _leaves(call.eager())
    leaves = [*pytree.tree_leaves(got), *after]
    if len(leaves) != len(eager):
        raise Difference(f"{len(leaves)} results, torch has {len(eager)}")
    versions = references(call)
    for number, (ours, want) in enumerate(zip(leaves, eager)):
        others = [version[number] for version in versions if len(version) == len(eager)]
        where = f"result {number}" if number < len(eager) - len(after) else f"input {number - len(eager) + len(after)}"
        _require_leaf(where, ours, want, others, strides, roundings[number] if roundings is not None else None)


def _require_leaf(
    where: str, ours: Any, want: Any, others: list[Any], strides: bool, rounding: torch.Tensor | None
) -> None:
    if not isinstance(want, torch.Tensor):
        if ours != want and not (ours != ours and want != want) and all(each == want for each in others):
            raise Difference(f"{where} is {ours!r}, torch has {want!r}")
        return
    if not isinstance(ours, torch.Tensor):
        raise Difference(f"{where} is a {type(ours).__name__}, torch has a tensor")
    if ours.dtype is not want.dtype or ours.shape != want.shape:
        text = f"{ours.dtype}{list(ours.shape)}, torch has {want.dtype}{list(want.shape)}"
        raise Difference(f"{where} is {text}")
    if strides and not _same_strides(ours, want):
        raise OtherStrides(f"{where} has strides {ours.stride()} for {list(ours.shape)}, torch has {want.stride()}")
    if want.dtype is torch.complex32:
        ours, want = ours.to(torch.complex64), want.to(torch.complex64)
    if torch.equal(ours, want) or torch.equal(ours.nan_to_num(7.0), want.nan_to_num(7.0)):
        return
    others = [each for each in others if each.shape == want.shape]
    if want.is_complex():
        ours, want = torch.view_as_real(ours.resolve_conj()), torch.view_as_real(want.resolve_conj())
        others = [torch.view_as_real(each.resolve_conj()) for each in others if each.is_complex()]
    if want.is_floating_point():
        _require_floats(where, ours, want, others, rounding)
    else:
        _require_integers(where, ours, want, others)


def _same_strides(ours: torch.Tensor, want: torch.Tensor) -> bool:
    """Strides of dimensions of size 1 do not matter."""
    if not want.numel():
        return True
    return all(a == b for size, a, b in zip(want.shape, ours.stride(), want.stride()) if size > 1)


def _require_integers(where: str, ours: torch.Tensor, want: torch.Tensor, others: list[torch.Tensor]) -> None:
    wrong = ours != want
    for each in others:  # a value that changes with a perturbation depends on rounding
        wrong &= each == want
    if wrong.any():
        place = tuple(wrong.nonzero()[0].tolist())
        raise Difference(
            f"{where}: {int(wrong.sum())} of {want.numel()} differ; {ours[place]} for {want[place]} at {place}"
        )


def _require_floats(
    where: str, ours: torch.Tensor, want: torch.Tensor, others: list[torch.Tensor], rounding: torch.Tensor | None
) -> None:
    center = (others[0] if others else want).double()
    ours = ours.double()
    finite = center.isfinite()
    spread = torch.zeros_like(center)
    # Not compared: NaN, which torch may return in this dtype, and values that a perturbation makes infinite or finite.
    steady = ~want.isnan()
    for each in others[1:]:
        each = each.double()
        steady &= (each.isfinite() == finite) & ((each == center) | finite)
        spread = torch.maximum(spread, torch.where(each.isfinite() & finite, (each - center).abs(), 0.0))
    largest = float(center[finite].abs().max()) if finite.any() else 0.0
    allowed = TIMES * spread + SHARE * center.abs() + SHARE_OF_LARGEST * largest + SMALLEST
    if rounding is not None:
        allowed += TIMES_ROUNDING * rounding
    infinite = center.isinf()
    wrong = steady & torch.where(infinite, ours != center, finite & ~((ours - center).abs() <= allowed))
    if wrong.any():
        place = tuple(wrong.nonzero()[0].tolist())
        raise Difference(
            f"{where}: {int(wrong.sum())} of {want.numel()} are off; {ours[place]:g} for {center[place]:g} at {place}, "
            f"where {float(allowed[place]):g} is allowed"
        )
