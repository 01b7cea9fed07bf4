"""PyTorch's operator database on tensors with `device="ttnn"`: results as torch's on the host.

`make test` picks one dtype, one pass and one sample of every third operator, `make sweep` runs all samples.
"""

from __future__ import annotations

import zlib
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree

from tests.compiler.operators.cases import (
    UNINITIALISED,
    Case,
    Variant,
    check_calls,
    comparable,
    parametrize,
    require_gradients,
    require_like_unless_random,
    require_shapes,
    torch_computes,
)
from tests.compiler.operators.judge import OtherStrides, require_like
from tests.compiler.operators.samples import Call

ONE_IN = 3  # operators of `make test`


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, _draw)


def _draw(name: str, variants: list[Variant]) -> list[Variant]:
    drawn = zlib.crc32(f"eager {name}".encode())
    return [variants[drawn % len(variants)]] if drawn // 100 % ONE_IN == 0 else []


def test_results_equal_torchs(case: Case, pytestconfig: pytest.Config) -> None:
    name, _, kind = case
    check = _check_backward if kind == "backward" else lambda call: _check(name, call)
    check_calls(case, pytestconfig, check, salt="eager")


def _check(name: str, call: Call) -> None:
    if not call.tensors or not torch_computes(call):
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
        require_shapes(got, call.eager()[0])
        return
    call, got = comparable(name, call, got)
    try:
        require_like_unless_random(call, got, after)
    except OtherStrides:
        require_like(call, got, after, strides=False)


def _check_backward(call: Call) -> None:
    require_gradients(call, lambda given: _on_host(call(*[each.to("ttnn") for each in given])))


def _on_host(result: Any) -> Any:
    return pytree.tree_map(lambda each: each.cpu() if isinstance(each, torch.Tensor) else each, result)
