"""Cases of PyTorch's operator database, and what compiled and eager calls of them must satisfy alike."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import pytest
import torch
import torch.utils._pytree as pytree

from tests.compiler.operators import samples
from tests.compiler.operators.judge import Backward, Difference, OtherStrides, require_like
from tests.compiler.operators.samples import DTYPES, OPERATORS, Call

Variant = tuple[torch.dtype, str]
Case = tuple[str, torch.dtype, str]

# Undefined results: uninitialised memory.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}

# Singular vectors are unique up to their sign: their product is compared.
SAME_UP_TO_SIGNS: dict[str, Callable[[Any], Any]] = {
    "svd_lowrank": lambda usv: usv[0] * usv[1].unsqueeze(-2) @ usv[2].mH,
    "pca_lowrank": lambda usv: usv[0] * usv[1].unsqueeze(-2) @ usv[2].mH,
}

# Casts of numbers out of an integer's range: undefined in C++, and torch returns what the processor does.
CASTS = {"byte", "char", "int", "long", "short"}


def parametrize(metafunc: pytest.Metafunc, draw: Callable[[str, list[Variant]], list[Variant]]) -> None:
    """All variants of all operators as `case` in a sweep, otherwise those that `draw` picks of each operator."""
    if "case" not in metafunc.fixturenames:
        return
    cases: list[Case] = []
    for name, info in OPERATORS.items():
        variants = list(_variants(name, info))
        if variants and not metafunc.config.getoption("--sweep"):
            variants = draw(name, variants)
        cases += [(name, *each) for each in variants]
    ids = [f"{name}-{str(dtype).removeprefix('torch.')}-{kind}" for name, dtype, kind in cases]
    metafunc.parametrize("case", cases, ids=ids)


def _variants(name: str, info: Any) -> Iterator[Variant]:
    for dtype in DTYPES:
        if dtype not in info.supported_dtypes("cpu"):
            continue
        yield dtype, "forward"
        if info.inplace_variant is not None:
            yield dtype, "in_place"
        if dtype.is_floating_point and isinstance(info, samples.ELEMENTWISE) and name not in CASTS:
            yield dtype, "extremal"
        if dtype.is_floating_point and info.supports_autograd and dtype in info.supported_backward_dtypes("cpu"):
            yield dtype, "backward"


def check_calls(case: Case, config: pytest.Config, check: Callable[[Call], None], salt: str = "") -> None:
    """Check all samples of a case in a sweep, otherwise one drawn by its name and `salt`; report all that fail."""
    name = case[0]
    failures = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in _calls(case, config.getoption("--sweep"), salt):
            try:
                check(call)
            except Exception as error:
                failures.append((call, error))
    if failures:
        lines = [f"{name}({call.text}): {type(error).__name__}: {error}" for call, error in failures]
        raise AssertionError("\n".join(lines)) from failures[0][1]


def _calls(case: Case, everything: bool, salt: str) -> list[Call]:
    name, dtype, kind = case
    calls_of_kind = getattr(samples, f"{'forward' if kind == 'backward' else kind}_calls")
    calls = list(calls_of_kind(OPERATORS[name], dtype))
    return calls if everything or not calls else [calls[zlib.crc32(f"{name}{dtype}{salt}".encode()) % len(calls)]]


def torch_computes(call: Call) -> bool:
    """Whether torch accepts the call and returns dense tensors."""
    try:
        outputs, _ = call.eager()
    except Exception:
        return False
    return all(each.layout is torch.strided for each in pytree.tree_leaves(outputs) if isinstance(each, torch.Tensor))


def comparable(name: str, call: Call, got: Any) -> tuple[Call, Any]:
    """The call and its result, where they are unique up to signs as a product that is unique."""
    if name not in SAME_UP_TO_SIGNS:
        return call, got
    product = SAME_UP_TO_SIGNS[name]
    return Call(lambda *tensors: product(call.function(*tensors)), call.tensors, call.text), product(got)


def require_like_unless_random(call: Call, got: Any, after: Sequence[torch.Tensor], **how: bool) -> None:
    """Compare with torch; of random results, which the device draws itself, only shapes and dtypes."""
    try:
        require_like(call, got, after, **how)
    except OtherStrides:
        raise
    except Difference:
        if not _is_random(call):
            raise
        require_shapes(got, call.eager()[0])


def require_gradients(call: Call, run: Callable[[list[torch.Tensor]], Any]) -> None:
    """Compare gradients through `run`, which makes the call with other tensors, with torch's."""
    backward = Backward.of(call)
    if backward is None or not torch_computes(backward.as_call()):
        return
    wanted = backward.as_call()
    got = backward.gradients(call.tensors, backward.seeds, run)
    after = [each.clone() for each in wanted.tensors]
    require_like_unless_random(wanted, got, after, strides=False, cancels=True)


def require_shapes(got: Any, wanted: Any) -> None:
    for ours, want in zip(pytree.tree_leaves(got), pytree.tree_leaves(wanted), strict=True):
        assert (ours.shape, ours.dtype) == (want.shape, want.dtype)


def _is_random(call: Call) -> bool:
    one, other = (_seeded(call, seed) for seed in (1, 2))
    return not all(torch.equal(a, b) for a, b in zip(one, other) if isinstance(a, torch.Tensor))


def _seeded(call: Call, seed: int) -> list[Any]:
    torch.manual_seed(seed)
    with mock.patch("torch.manual_seed"):  # which some samples call themselves
        return pytree.tree_leaves(call.function(*[each.clone() for each in call.tensors]))
