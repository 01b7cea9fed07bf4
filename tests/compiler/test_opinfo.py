"""PyTorch's operator database through the compiler: correct, rejected as by torch, or listed here with a reason.

`make test` picks one dtype and one pass of every operator, `make sweep` runs all samples.
"""

from __future__ import annotations

import contextlib
import traceback
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch._dynamo.backends.registry import lookup_backend
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)

from tests.compiler.operators import samples
from tests.compiler.operators.cases import (
    UNINITIALISED,
    Case,
    check_calls,
    comparable,
    parametrize,
    require_gradients,
    require_like_unless_random,
    torch_computes,
)
from tests.compiler.operators.judge import OtherStrides, compiled, require_like
from tests.compiler.operators.samples import OPERATORS, Call
from torch_ttnn.compiler.errors import CompileError

# Dynamo breaks the graph at these, and torch runs them.
DEPENDS_ON_VALUES = (DataDependentOutputException, DynamicOutputShapeException)

# Calls that eager torch rejects and torch's own capture accepts: `aot_eager` also computes them.
ACCEPTED_BY_CAPTURE = {
    "complex": "the dtype of `out` is not checked",
    "aminmax": "the dtype of `out` is not checked",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, lambda name, variants: [variants[zlib.crc32(name.encode()) % len(variants)]])


def test_results_equal_torchs(case: Case, pytestconfig: pytest.Config) -> None:
    name, _, kind = case
    check_calls(case, pytestconfig, _check_backward if kind == "backward" else lambda call: _check(name, call))


def _check(name: str, call: Call) -> None:
    if not torch_computes(call):
        return
    given = [each.clone() for each in call.tensors]
    try:
        with torch.no_grad():
            got = compiled(call, given)
    except DEPENDS_ON_VALUES:
        return
    except Exception as error:
        if _is_ours(error) or _capture_computes(call):
            raise
        return
    if name in UNINITIALISED:
        wanted = pytree.tree_leaves(call.eager()[0])
        for ours, want in zip(pytree.tree_leaves(got), wanted, strict=True):
            assert (ours.shape, ours.dtype, ours.stride()) == (want.shape, want.dtype, want.stride())
        return
    call, got = comparable(name, call, got)
    try:
        require_like_unless_random(call, got, given)  # dropout: lowering/elementwise/test_dropout.py
    except OtherStrides:
        assert _strides(got) in _strides_of_capture(call)
        require_like(call, got, given, strides=False)


def _capture_computes(call: Call) -> bool:
    """Whether torch's own capture accepts the call: `aot_eager` rejects `polygamma_`, as all backends do."""
    try:
        compiled(call, [each.clone() for each in call.tensors], using=lookup_backend("aot_eager"))
    except Exception:
        return False
    return True


def _strides(outputs: Any) -> list[tuple[int, ...]]:
    return [each.stride() for each in pytree.tree_leaves(outputs) if isinstance(each, torch.Tensor)]


def _strides_of_capture(call: Call) -> Iterator[list[tuple[int, ...]]]:
    """Strides of torch's own capture where they differ from eager torch: those of `aot_eager` and of fake tensors."""
    yield _strides(compiled(call, [each.clone() for each in call.tensors], using=lookup_backend("aot_eager")))
    with FakeTensorMode() as mode:
        yield _strides(call.function(*[mode.from_tensor(each) for each in call.tensors]))


def _check_backward(call: Call) -> None:
    with contextlib.suppress(*DEPENDS_ON_VALUES):
        require_gradients(call, lambda given: compiled(call, given))


def _is_ours(error: BaseException) -> bool:
    """Whether the error is one of the compiler: torch raises the others."""
    causes: list[BaseException] = []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    innermost = traceback.extract_tb(causes[-1].__traceback__)[-1].filename
    return any(isinstance(each, CompileError) for each in causes) or "torch_ttnn/compiler" in innermost


@pytest.mark.parametrize("name", [name for name, info in OPERATORS.items() if info.error_inputs_func is not None])
def test_refuses_what_torch_refuses(name: str) -> None:
    accepted = []
    for call in samples.error_calls(OPERATORS[name]):
        if torch_computes(call):
            continue
        try:
            compiled(call, [each.clone() for each in call.tensors])
            torch._dynamo.reset()  # Dynamo checks more than the backend sees, such as `out`
            torch.compile(call.function, backend="ttnn")(*[each.clone() for each in call.tensors])
        except Exception as error:
            assert not _is_ours(error), f"{name}({call.text}) fails in the compiler: {error!r}"
            continue
        accepted.append(call.text)
    assert not accepted or name in ACCEPTED_BY_CAPTURE
