"""PyTorch's operator database on tensors with `device="ttnn"`: results as torch's on the host.

`make test` picks one dtype, one pass and one sample of every third operator, `make sweep` runs all samples.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree

from tests.compiler.operators import samples
from tests.compiler.operators.judge import Backward, Difference, OtherStrides, require_like
from tests.compiler.operators.samples import DTYPES, OPERATORS, Call
from tests.compiler.test_opinfo import (
    CASTS,
    SAME_UP_TO_SIGNS,
    UNINITIALISED,
    _is_random,
    _require_shapes,
    _torch_computes,
)

ONE_IN = 3  # operators of `make test`


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    cases = []
    for name, info in OPERATORS.items():
        offered = list(_offered(name, info))
        if not metafunc.config.getoption("--sweep") and offered:
            drawn = zlib.crc32(f"eager {name}".encode())
            offered = [offered[drawn % len(offered)]] if drawn // 100 % ONE_IN == 0 else []
        cases += [(name, *each) for each in offered]
    metafunc.parametrize("case", cases, ids=[f"{name}-{str(dtype)[6:]}-{kind}" for name, dtype, kind in cases])


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
    return calls if everything or not calls else [calls[zlib.crc32(f"{name}{dtype}eager".encode()) % len(calls)]]


def test_results_equal_torchs(case: tuple[str, torch.dtype, str], pytestconfig: pytest.Config) -> None:
    name, dtype, kind = case
    failures = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in _calls(name, dtype, kind, pytestconfig.getoption("--sweep")):
            try:
                _check_backward(call) if kind == "backward" else _check(name, call)
            except Exception as error:
                failures.append((call, error))
    if failures:
        lines = [f"{name}({call.text}): {type(error).__name__}: {error}" for call, error in failures]
        raise AssertionError("\n".join(lines)) from failures[0][1]


def _check(name: str, call: Call) -> None:
    if not call.tensors or not _torch_computes(call):
        return
    given = [each.clone().to("ttnn") for each in call.tensors]
    try:
        with torch.no_grad():
            got = _on_host(call(*given))
    except RuntimeError as error:  # torch's own rule, for all devices
        if "to be on cpu" not in str(error):
            raise
        return
    after = [each.cpu() for each in given]
    if name in UNINITIALISED:
        _require_shapes(got, call.eager()[0])
        return
    if name in SAME_UP_TO_SIGNS:
        same = SAME_UP_TO_SIGNS[name]
        whole, got = call.function, same(got)
        call = Call(lambda *tensors: same(whole(*tensors)), call.tensors, call.text)
    try:
        require_like(call, got, after)
    except OtherStrides:
        require_like(call, got, after, strides=False)
    except Difference:
        if not _is_random(call):
            raise
        _require_shapes(got, call.eager()[0])


def _on_host(made: Any) -> Any:
    return pytree.tree_map(lambda each: each.cpu() if isinstance(each, torch.Tensor) else each, made)


def _check_backward(call: Call) -> None:
    backward = Backward.of(call)
    if backward is None or not _torch_computes(backward.as_call()):
        return
    wanted = backward.as_call()

    def run(given: list[torch.Tensor]) -> Any:
        return _on_host(call(*[each.to("ttnn") for each in given]))

    got = backward.gradients(call.tensors, backward.seeds, run)
    try:
        require_like(wanted, got, [each.clone() for each in wanted.tensors], strides=False, cancels=True)
    except Difference:
        if not _is_random(call):
            raise
        _require_shapes(got, wanted.eager()[0])
