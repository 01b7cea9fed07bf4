"""Tensors on `ttnn`: moves, what is stored, views, writes, indexing, printing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import torch_ttnn
from torch_ttnn.compiler.errors import HostOperationWarning
from torch_ttnn.eager import log
from torch_ttnn.eager.storage import Place

DTYPES = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)


def on_device(tensor: torch.Tensor) -> bool:
    return tensor._held.place is Place.DEVICE  # type: ignore[attr-defined]


def test_moves() -> None:
    x = torch.randn(3, 4)
    there = x.to("ttnn")
    assert there.device == torch.device("ttnn:0") and there.is_ttnn and x.ttnn().device == there.device
    assert torch.equal(there.cpu(), x) and torch.equal(there.to("cpu"), x)
    assert there.to("ttnn") is there
    assert np.array_equal(there.cpu().numpy(), x.numpy())
    assert there.tolist() == x.tolist()
    with pytest.raises(TypeError, match=r"Use Tensor\.cpu"):
        there.numpy()


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_stored_is_exact(dtype: torch.dtype) -> None:
    x = (torch.randn(5, 33) * 100).to(dtype)
    there = x.to("ttnn")
    assert on_device(there)
    assert there.dtype is dtype and torch.equal(there.cpu(), x)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (torch.tensor([1.0, 1e-300], dtype=torch.float64), "float64"),
        (torch.tensor([2**40, 1]), "32 bits"),
        (torch.tensor([1.0, float("nan")]), "NaN"),
        (torch.tensor([1 + 2j]), "complex"),
    ],
)
def test_the_host_holds_what_the_device_cannot(
    values: torch.Tensor, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values stay exact, and operations on them warn, or raise if none may run on the host."""
    monkeypatch.setattr(log, "_warned", set())
    there = values.to("ttnn")
    assert torch.equal(there.cpu().nan_to_num(7.0), values.nan_to_num(7.0))
    with pytest.warns(HostOperationWarning, match=reason):
        assert torch.equal((there + 1).cpu().nan_to_num(7.0), (values + 1).nan_to_num(7.0))
    with torch_ttnn.eager(strict=True), pytest.raises(RuntimeError, match=f"would run on the host.*{reason}"):
        there + 1


@pytest.mark.filterwarnings("ignore::torch_ttnn.HostOperationWarning")
def test_integers_never_wrap_at_32_bits() -> None:
    x = torch.tensor([2**30, -5])
    assert torch.equal((x.to("ttnn") * 4).cpu(), x * 4)
    assert torch.equal((x.to("ttnn") + x.to("ttnn")).cpu(), x + x)
    assert torch.equal(x.to("ttnn").cumsum(0).cpu(), x.cumsum(0))


def test_factories() -> None:
    assert torch.zeros(2, 3, device="ttnn:0").tolist() == [[0.0] * 3] * 2
    assert torch.full((2,), 7, device="ttnn").tolist() == [7, 7]
    assert torch.arange(1, 9, 3, device="ttnn").tolist() == [1, 4, 7]
    assert torch.tensor([1, 2], device="ttnn").dtype is torch.int64
    assert torch.eye(2, device="ttnn").tolist() == [[1, 0], [0, 1]]
    assert torch.linspace(0, 1, 3, device="ttnn").tolist() == [0, 0.5, 1]
    x = torch.randn(2, 3).to("ttnn")
    for made in (torch.zeros_like(x), torch.ones_like(x), torch.rand_like(x), x.new_zeros(2), x.new_tensor([1.0])):
        assert made.device == x.device
    assert torch.full_like(x, 2.0).tolist() == [[2.0] * 3] * 2
    assert torch.zeros_like(x, device="cpu").device.type == "cpu"


def test_the_device_as_a_context() -> None:
    with torch.device("ttnn"):
        layer = torch.nn.Linear(3, 2)
        made = [torch.ones(2), torch.arange(3), torch.rand(2), torch.tensor([1.0])]
        total = layer(torch.ones(1, 3)).sum() + made[0].sum()
    assert all(each.device.type == "ttnn" for each in [*made, *layer.parameters(), total])
    torch.set_default_device("ttnn")
    try:
        assert (torch.ones(2) * 3).tolist() == [3, 3]
    finally:
        torch.set_default_device(None)


WRITES = {
    "a row": lambda x: x[0].add_(5),
    "a column": lambda x: x[:, 1].mul_(2),
    "a transposed row": lambda x: x.t()[2].zero_(),
    "a slice of a view": lambda x: x.view(2, 6)[:, 1:4].copy_(torch.ones(2, 3, device=x.device)),
    "a diagonal": lambda x: x.diagonal().fill_(9.0),
    "by index": lambda x: x.__setitem__((1, 2), 5.0),
    "by a slice": lambda x: x.__setitem__(slice(0, 2), 3.0),
    "by an index tensor": lambda x: x.__setitem__(torch.tensor([2, 0], device=x.device), -1.0),
    "all": lambda x: x.copy_(torch.ones(3, 4)),
    "one of several views": lambda x: x.unbind(0)[1].add_(1),
    "a chunk": lambda x: x.chunk(2, 1)[1].neg_(),
    "a step of two": lambda x: x[::2].add_(1),
    "broadcast": lambda x: x.add_(torch.ones(4, device=x.device)),
    "itself": lambda x: x.add_(x),
    "itself by a view": lambda x: x[0].add_(x[1]),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_through_a_view_reaches_its_base(name: str) -> None:
    x = torch.arange(12.0).view(3, 4)
    there = x.to("ttnn")
    row = there[1]  # a view taken before the write sees it
    WRITES[name](x), WRITES[name](there)
    assert torch.equal(there.cpu(), x)
    assert torch.equal(row.cpu(), x[1])


READS = {
    "an integer": lambda x: x[1],
    "negative": lambda x: x[-1, -2],
    "a slice": lambda x: x[1:, ::2],
    "an ellipsis": lambda x: x[..., 0],
    "none": lambda x: x[:, None],
    "an index tensor": lambda x: x[torch.tensor([2, 0, 2], device=x.device)],
    "two index tensors": lambda x: x[torch.tensor([2, 0], device=x.device), torch.tensor([1, 3], device=x.device)],
    "a list": lambda x: x[[0, 2]],
    "gather": lambda x: x.gather(1, torch.tensor([[0], [1], [3]], device=x.device)),
    "expand": lambda x: x[:1].expand(5, 4) + 1,
    "permute and reshape": lambda x: x.view(3, 2, 2).permute(2, 0, 1).reshape(2, 6),
    "contiguous": lambda x: x.t().contiguous(),
    "unfold": lambda x: x.unfold(1, 2, 1) * 1,
}


@pytest.mark.parametrize("name", READS)
def test_views_and_indices_are_on_the_device(name: str) -> None:
    x = torch.arange(12.0).view(3, 4)
    with torch_ttnn.eager(strict=True):
        made = READS[name](x.to("ttnn"))
    want = READS[name](x)
    assert torch.equal(made.cpu(), want) and made.stride() == want.stride()


@pytest.mark.filterwarnings("ignore::torch_ttnn.HostOperationWarning")
def test_masks() -> None:
    x = torch.randn(4, 5)
    there = x.to("ttnn")
    assert torch.equal(there[there > 0].cpu(), x[x > 0])
    there[there > 0] = 0.0
    assert torch.equal(there.cpu(), x.clamp(max=0))


def test_views_cost_nothing() -> None:
    x = torch.randn(4, 6).to("ttnn")
    with torch_ttnn.eager() as ran:
        x.t().view(2, 3, 4)[1:].unsqueeze(0).expand(3, 1, 3, 4)
    assert ran.rows == []


def test_views_in_place() -> None:
    x = torch.arange(6.0).view(2, 3)
    there = x.clone().to("ttnn")
    assert torch.equal(there.transpose_(0, 1).unsqueeze_(0).cpu(), x.t()[None])
    assert there.shape == (1, 3, 2)
    assert there.resize_(2, 2).shape == (2, 2)


def test_errors_are_torchs() -> None:
    x = torch.randn(3, 4).to("ttnn")
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        x[torch.tensor([5], device="ttnn")]
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        x @ x
    with pytest.raises(RuntimeError, match="shape '\\[5\\]' is invalid"):
        x.view(5)
    with pytest.raises(RuntimeError, match="same device, but found at least two devices, ttnn:0 and cpu"):
        x + torch.ones(3, 4)
    with pytest.raises(RuntimeError, match="has no address on the host"):
        x.data_ptr()


def test_indices_of_a_view_are_checked_alone() -> None:
    """Other elements of its storage may be no indices."""
    table = torch.arange(6.0).reshape(3, 2)
    order = torch.tensor([[2, 100], [0, -100]])
    moved, here = table.to("ttnn"), order.to("ttnn")
    with torch_ttnn.eager(strict=True):
        for _ in range(2):
            assert torch.equal(moved.index_select(0, here[:, 0]).cpu(), table.index_select(0, order[:, 0]))
    with pytest.raises(IndexError):
        moved.index_select(0, here[0])


def test_numbers_of_the_host_may_be_operands() -> None:
    x = torch.randn(3, 4)
    assert torch.equal((x.to("ttnn") * torch.tensor(2.0)).cpu(), x * 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2, 2),
        lambda: torch.arange(3, dtype=torch.int32),
        lambda: torch.empty(0, 3),
        lambda: torch.tensor(1.5),
        lambda: torch.ones(2, requires_grad=True),
        lambda: torch.randn(100, 100, dtype=torch.float16),
    ],
)
def test_prints_as_torch_does(make) -> None:
    """torch's text, with the device."""
    here = make()
    text = repr(here.detach().to("ttnn").requires_grad_(here.requires_grad))
    assert "device='ttnn:0'" in text
    plain = text.replace(" device='ttnn:0',", "").replace(", device='ttnn:0'", "").replace("\n       ", "")
    assert plain.replace(" ", "") == repr(here).replace("\n       ", "").replace(" ", "")


def test_numbers_and_text() -> None:
    x = torch.tensor(2.5, device="ttnn")
    assert float(x) == 2.5 and f"{x:.2f}" == "2.50" and bool(x > 1) and x.item() == 2.5


def test_empty_tensors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.empty(0, 4, device="ttnn")
        assert torch.cat([x, torch.ones(2, 4, device="ttnn")]).shape == (2, 4)
        assert (x + 1).shape == (0, 4) and x.sum().item() == 0


def test_a_deleted_tensor_frees_the_device() -> None:
    x = torch.zeros(256, 256, device="ttnn")
    x + 1
    before = torch.ttnn.memory_allocated()
    for _ in range(3):
        made = [x + 1 for _ in range(10)]
        assert torch.ttnn.memory_allocated() > before
        del made
    assert torch.ttnn.memory_allocated() == before


def test_functional_transforms() -> None:
    x = torch.randn(3, 4)
    assert torch.equal(torch.vmap(lambda row: row * 2)(x.to("ttnn")).cpu(), x * 2)
    assert torch.allclose(torch.func.grad(lambda each: (each * each).sum())(x.to("ttnn")).cpu(), 2 * x)
