"""What ran where, and warnings about the host."""

from __future__ import annotations

import warnings

import pytest
import torch

import torch_ttnn
from torch_ttnn.compiler.errors import HostOperationWarning
from torch_ttnn.eager.log import RunsOnHost


def test_the_log_counts_operations_and_moves() -> None:
    with torch_ttnn.eager() as log:
        x = torch.ones(2, 2).to("ttnn")
        total = ((x + 1) @ x + x).sum()
        total.cpu()
    assert (log.device_operations, log.host_operations, log.uploads, log.downloads) == (4, 0, 1, 1)
    assert {row.operation: row.times for row in log.rows if row.where == "device"} == {
        "aten.add.Tensor": 2,
        "aten.mm.default": 1,
        "aten.sum.default": 1,
    }
    assert "4 operations on the device, 0 on the host, 1 uploads, 1 downloads" in str(log)


def test_the_log_has_the_backward_pass() -> None:
    x = torch.ones(2, 2, device="ttnn", requires_grad=True)
    with torch_ttnn.eager() as log:
        (x @ x).sum().backward()
    assert next(row.times for row in log.rows if row.operation == "aten.mm.default") == 3


def test_an_operation_of_the_host_is_reported_once_for_its_line() -> None:
    x = torch.eye(3, device="ttnn")
    with warnings.catch_warnings(record=True) as caught, torch_ttnn.eager() as log:
        warnings.simplefilter("always")
        for _ in range(3):
            torch.linalg.inv(x)
    assert len([each for each in caught if issubclass(each.category, HostOperationWarning)]) == 1
    assert "aten.linalg_inv_ex.default runs on the host" in str(caught[0].message)
    assert f"{__file__}:" in str(caught[0].message)
    assert log.host_operations == 3 and __file__ in str(log)


def test_strict_allows_no_operation_on_the_host() -> None:
    x = torch.eye(3, device="ttnn")
    with torch_ttnn.eager(strict=True), pytest.raises(RunsOnHost, match=r"aten\.linalg_inv_ex\.default would run on"):
        torch.linalg.inv(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.linalg.inv(x)


def test_a_lowering_of_a_user_runs_eagerly() -> None:
    @torch.library.custom_op("eager_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    @torch_ttnn.lowers(torch.ops.eager_tests.twice.default)
    def lower_twice(ttnn, x):
        return ttnn.multiply(x, 2)

    with torch_ttnn.eager(strict=True) as log:
        assert twice(torch.ones(2, device="ttnn")).tolist() == [2, 2]
    assert log.device_operations == 1
