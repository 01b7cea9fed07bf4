"""PyTorch's operator database through the compiler: correct, rejected as by torch, or listed here with a reason.

`make test` picks one dtype and one pass of every operator, `make sweep` runs all samples.
"""

from __future__ import annotations

import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

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
from tests.compiler.operators.judge import Backward, Difference, OtherStrides, compiled, require_like
from tests.compiler.operators.samples import DTYPES, OPERATORS, Call
from torch_ttnn.compiler.errors import CompileError

# Dynamo breaks the graph at these, and torch runs them.
DEPENDS_ON_VALUES = (DataDependentOutputException, DynamicOutputShapeException)

# Undefined results: uninitialised memory.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}

# Singular vectors are unique up to their sign: their product is compared.
SAME_UP_TO_SIGNS: dict[str, Callable[[Any], Any]] = {
    "svd_lowrank": lambda usv: usv[0] * usv[1].unsqueeze(-2) @ usv[2].mH,
    "pca_lowrank": lambda usv: usv[0] * usv[1].unsqueeze(-2) @ usv[2].mH,
}

# Calls that eager torch rejects and torch's own capture accepts: `aot_eager` also computes them.
ACCEPTED_BY_CAPTURE = {
    "complex": "the dtype of `out` is not checked",
    "aminmax": "the dtype of `out` is not checked",
}

# Casts of numbers out of an integer's range: undefined in C++, and torch returns what the processor does.
CASTS = {"byte", "char", "int", "long", "short"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    cases = []
    for name, info in OPERATORS.items():
        offered = list(_offered(name, info))
        if not metafunc.config.getoption("--sweep") and offered:
            offered = [offered[zlib.crc32(name.encode()) % len(offered)]]
        cases += [(name, *each) for each in offered]
    ids = [f"{name}-{str(dtype).removeprefix('torch.')}-{kind}" for name, dtype, kind in cases]
    metafunc.parametrize("case", cases, ids=ids)


def _offered(name: str, info: Any) -> Iterator[tuple[torch.dtype, str]]:
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


def _calls(name: str, dtype: torch.dtype, kind: str, everything: bool) -> list[Call]:
    made = getattr(samples, f"{'forward' if kind == 'backward' else kind}_calls")(OPERATORS[name], dtype)
    calls = list(made)
    return calls if everything or not calls else [calls[zlib.crc32(f"{name}{dtype}".encode()) % len(calls)]]


def test_results_equal_torchs(case: tuple[str, torch.dtype, str], pytestconfig: pytest.Config) -> None:
    name, dtype, kind = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        failures = []
        for call in _calls(name, dtype, kind, pytestconfig.getoption("--sweep")):
            try:
                _check_backward(call) if kind == "backward" else _check(name, call)
            except Exception as error:
                failures.append((call, error))
        if failures:
            lines = [f"{name}({call.text}): {type(error).__name__}: {error}" for call, error in failures]
            raise AssertionError("\n".join(lines)) from failures[0][1]


def _check(name: str, call: Call) -> None:
    if not _torch_computes(call):
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
    if name in SAME_UP_TO_SIGNS:
        same = SAME_UP_TO_SIGNS[name]
        whole, got = call.function, same(got)
        call = Call(lambda *tensors: same(whole(*tensors)), call.tensors, call.text)
    try:
        require_like(call, got, given)
    except OtherStrides:
        assert _strides(got) in _strides_of_capture(call)
        require_like(call, got, given, strides=False)
    except Difference:
        if not _is_random(call):  # dropout draws its mask on the device: lowering/elementwise/test_dropout.py
            raise
        _require_shapes(got, call.eager()[0])


def _require_shapes(got: Any, wanted: Any) -> None:
    """What can be compared of random results."""
    for ours, want in zip(pytree.tree_leaves(got), pytree.tree_leaves(wanted), strict=True):
        assert (ours.shape, ours.dtype) == (want.shape, want.dtype)


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


def _is_random(call: Call) -> bool:
    one, other = (_seeded(call, seed) for seed in (1, 2))
    return not all(torch.equal(a, b) for a, b in zip(one, other) if isinstance(a, torch.Tensor))


def _seeded(call: Call, seed: int) -> list[Any]:
    torch.manual_seed(seed)
    with mock.patch("torch.manual_seed"):  # which some samples call themselves
        return pytree.tree_leaves(call.function(*[each.clone() for each in call.tensors]))


def _check_backward(call: Call) -> None:
    backward = Backward.of(call)
    if backward is None or not _torch_computes(backward.as_call()):
        return
    wanted = backward.as_call()
    try:
        got = backward.gradients(call.tensors, backward.seeds, lambda given: compiled(call, given))
    except DEPENDS_ON_VALUES:
        return
    try:
        require_like(wanted, got, [each.clone() for each in wanted.tensors], strides=False, cancels=True)
    except Difference:
        if not _is_random(call):
            raise
        _require_shapes(got, wanted.eager()[0])


def _is_ours(error: BaseException) -> bool:
    """Whether the error is one of the compiler: torch raises the others."""
    causes: list[BaseException] = []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    innermost = traceback.extract_tb(causes[-1].__traceback__)[-1].filename
    return any(isinstance(each, CompileError) for each in causes) or "torch_ttnn/compiler" in innermost


def _torch_computes(call: Call) -> bool:
    """Whether torch accepts the call and returns dense tensors."""
    try:
        outputs, _ = call.eager()
    except Exception:
        return False
    return all(each.layout is torch.strided for each in pytree.tree_leaves(outputs) if isinstance(each, torch.Tensor))


@pytest.mark.parametrize("name", [name for name, info in OPERATORS.items() if info.error_inputs_func is not None])
def test_refuses_what_torch_refuses(name: str) -> None:
    accepted = []
    for call in samples.error_calls(OPERATORS[name]):
        if _torch_computes(call):
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
