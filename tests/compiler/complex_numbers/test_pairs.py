"""Complex numbers: pairs of real tensors on the device, torch's complex tensors everywhere else."""

from __future__ import annotations

import pytest
import torch
import torch.utils._pytree as pytree
from torch import nn

from torch_ttnn import TorchTtnnOption
from torch_ttnn.compiler.ir.metadata import REASON


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setenv("TORCH_TTNN_VERIFY", "1")
    torch._dynamo.reset()
    torch.manual_seed(0)


def z(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.complex64)


def compiled(function, **options):
    """The compiled function, and a function that lists the host operations of its programs."""
    chosen = TorchTtnnOption(cache_dir="", warn=False, **options)

    def host() -> list[str]:
        return [str(node.target) for program in chosen.programs for node in program.graph.nodes if REASON.on(node)]

    return torch.compile(function, backend="ttnn", options=chosen), host


def assert_like(got: torch.Tensor, want: torch.Tensor, bound: float = 0.02) -> None:
    assert got.dtype is want.dtype and got.shape == want.shape
    assert got.is_conj() == want.is_conj() and got.is_neg() == want.is_neg()
    steps = zip(want.shape, got.stride(), want.stride())
    assert all(size == 1 or mine == theirs for size, mine, theirs in steps), (got.stride(), want.stride())
    if want.dtype is torch.bool:
        assert torch.equal(got, want)
        return
    got, want = got.to(torch.complex128), want.to(torch.complex128)
    assert (got - want).abs().max() <= bound * want.abs().max()
    assert (got - want).norm() <= bound / 2 * want.norm()


def check(function, *args: torch.Tensor, host: list[str] | None = None, **options) -> None:
    run, left = compiled(function, **options)
    with torch.no_grad():
        want = pytree.tree_leaves(function(*[each.clone() for each in args]))
        got = pytree.tree_leaves(run(*[each.clone() for each in args]))
    for mine, theirs in zip(got, want, strict=True):
        assert_like(mine, theirs, 4e-3 if options.get("precision") == "float32" else 0.02)  # products have 11 bits
    assert left() == (host or [])


UNARY = {
    "abs": torch.abs,
    "angle": lambda a: torch.angle(a),
    "exp": torch.exp,
    "log": torch.log,
    "neg": torch.neg,
    "sgn": torch.sgn,
    "square": torch.square,
    "cube": lambda a: a**3,
    "reciprocal": torch.reciprocal,
    "real": lambda a: (a * 2).real + 1,
    "imag": lambda a: (a * 2).imag + 1,
    "imag of a conjugate": lambda a: (a * 2).conj().imag + 1,
    "conj": lambda a: (a * 2).conj(),
    "conj, resolved": lambda a: (a * 2).conj().resolve_conj(),
    "conj, transposed": lambda a: (a * 2).mH * 3,
    "view_as_real": lambda a: torch.view_as_real(a * 2) + 1,
    "times a number": lambda a: a * 2.5,
    "times i": lambda a: a * 1j,
    "plus a number": lambda a: a + (2 - 3j),
    "a number minus": lambda a: (1 + 1j) - a,
    "divided by a number": lambda a: a / (3 - 1j),
    "a number divided": lambda a: 2 / (a + 5),
    "reshape": lambda a: (a * 2).reshape(6, 2) + 1,
    "permute": lambda a: (a * 2).permute(1, 0) + 1,
    "contiguous": lambda a: (a * 2).t().contiguous(),
    "strided": lambda a: (a * 2).t(),
    "expand": lambda a: (a[:1] * 2).expand(3, 4) + 1,
    "slice": lambda a: (a * 2)[1:, ::2] + 1,
    "select": lambda a: (a * 2)[:, 1] + 1,
    "unsqueeze": lambda a: (a * 2).unsqueeze(1).squeeze(1) + 1,
    "split": lambda a: torch.cat([each * 2 for each in (a * 2).split(2, dim=1)]),
    "unbind": lambda a: sum((a * 2).unbind(0)),
    "flip": lambda a: (a * 2).flip(0),
    "roll": lambda a: (a * 2).roll(1, 0),
    "pad": lambda a: torch.nn.functional.pad(a * 2, (1, 2)),
    "sum": lambda a: (a * 2).sum(),
    "sum of rows": lambda a: (a * 2).sum(-1, keepdim=True),
    "mean": lambda a: (a * 2).mean(0),
    "cumsum": lambda a: (a * 2).cumsum(1),
    "rows": lambda a: (a * 2)[torch.tensor([2, 0])],
    "zeros": lambda a: torch.zeros_like(a) + a,
    "to real": lambda a: torch.view_as_real(a * 2)[..., 0].to(torch.bfloat16),
    "written into": lambda a: a.clone().mul_(2).add_(1j),
    "row written": lambda a: _with_row(a),
}


def _with_row(a: torch.Tensor) -> torch.Tensor:
    a = a * 2
    a[1] = a[0] * 1j
    return a


@pytest.mark.parametrize("name", UNARY)
def test_of_one_tensor(name: str):
    check(UNARY[name], z(3, 4))


BINARY = {
    "mul": torch.mul,
    "add": torch.add,
    "sub": lambda a, b: torch.sub(a, b, alpha=2),
    "add, scaled by a complex number": lambda a, b: torch.add(a, b, alpha=2j),
    "div": lambda a, b: a / (b + 4),
    "cat": lambda a, b: torch.cat([a * 2, b]),
    "stack": lambda a, b: torch.stack([a * 2, b], dim=1),
    "where": lambda a, b: torch.where(a.real > 0, a, b),
    "matmul": lambda a, b: a @ b.mT,
    "matmul with a conjugate": lambda a, b: a @ b.mH,
    "batched matmul": lambda a, b: torch.stack([a, b]) @ torch.stack([b, a]).mH,
    "einsum": lambda a, b: torch.einsum("ij,kj->ik", a, b.conj()),
    "addmm": lambda a, b: torch.addmm(a[:, :3], a, b.mT),
    "with real": lambda a, b: a * b.real + b.imag - a / (b.abs() + 1),
    "broadcast": lambda a, b: a[:, :1] * b[:1] + b[:1].real,
    "made of parts": lambda a, b: torch.complex(a.real, b.imag) * 2,
    "polar": lambda a, b: torch.polar(a.abs(), b.imag) * 2,
    "equal": lambda a, b: torch.stack([a, b]) == a,
    "with integers": lambda a, b: a * (b.real > 0).long() + (a.imag > 0),
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("precision", ["auto", "float32"])
def test_of_two_tensors(name: str, precision: str):
    options = {} if precision == "auto" else {"precision": precision}
    check(BINARY[name], z(3, 4), z(3, 4), **options)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_quotients_and_lengths_do_not_overflow(scale: float):
    check(lambda a, b: (a / b, b.abs()), z(3, 4) * scale, z(3, 4) * scale)


# -- operations without real form--------------------------------------------------------------------------------------


def test_operations_without_real_form_get_complex_tensors():
    check(lambda a: torch.fft.fft(a * 2, dim=0) * 1j, z(4, 4), host=["aten._fft_c2c.default"])
    check(lambda x: torch.fft.ifft(torch.fft.fft(x * 2) * 2).real + 1, torch.randn(4, 8),
          host=["aten._fft_r2c.default", "aten._fft_c2c.default"])  # fmt: skip


def test_a_users_operator_sees_torchs_strides():
    @torch.library.custom_op("complex_test::walk", mutates_args=())
    def walk(a: torch.Tensor) -> torch.Tensor:
        return torch.as_strided(torch.view_as_real(a), (a.numel() * 2,), (1,)).clone()

    @walk.register_fake
    def _(a):
        return a.new_empty((a.numel() * 2,), dtype=torch.float32)

    check(lambda a: walk((a * 2).t()), z(3, 4), host=["complex_test.walk.default"])


def test_complex128_stays_on_the_host():
    run, host = compiled(lambda a: a * 2 + 1)
    a = torch.randn(3, 4, dtype=torch.complex128)
    assert torch.equal(run(a), a * 2 + 1)
    assert len(host()) == 2


def test_empty_tensors_stay_on_the_host():
    run, _ = compiled(lambda a: (a * 2).sum(0))
    assert torch.equal(run(z(0, 3)), torch.zeros(3, dtype=torch.complex64))


# -- aliases and changes in place -------------------------------------------------------------------------------------


def test_an_input_is_changed_through_a_complex_view():
    def turn(x):
        torch.view_as_complex(x).mul_(1j)
        return x + 1

    run, host = compiled(turn)
    x = torch.randn(4, 2)
    mine, theirs = x.clone(), x.clone()
    got, want = run(mine), turn(theirs)
    assert_like(got, want)
    assert_like(mine, theirs)
    assert host() == []


def test_views_of_an_input_are_views():
    run, _ = compiled(lambda a: (torch.view_as_real(a), a.conj(), a * 2))
    a = z(3, 4)
    seen, conjugate, _ = run(a)
    a += 1
    assert torch.equal(seen, torch.view_as_real(a)) and torch.equal(conjugate, a.conj())
    assert conjugate.is_conj()


def test_a_conjugate_as_input():
    check(lambda a: a * 2 + 1j, z(3, 4))
    run, host = compiled(lambda a: a * 2 + 1j)
    a = z(3, 4).conj()
    assert_like(run(a), a * 2 + 1j)
    assert host() == []


# -- rotary embedding of Llama ----------------------------------------------------------------------------------------


def apply_rotary_emb(q, k, freqs_cis):
    """As in Llama's own code."""
    seen = [torch.view_as_complex(each.float().reshape(*each.shape[:-1], -1, 2)) for each in (q, k)]
    freqs_cis = freqs_cis.view(1, q.shape[1], 1, q.shape[-1] // 2)
    return [torch.view_as_real(each * freqs_cis).flatten(3).type_as(q) for each in seen]


def frequencies(length: int, width: int) -> torch.Tensor:
    angles = torch.outer(torch.arange(length).float(), 1.0 / 10000 ** (torch.arange(0, width, 2) / width))
    return torch.polar(torch.ones_like(angles), angles)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 7, 2, 16), (2, 33, 4, 64), (3, 1, 1, 6)])
def test_rotary_embedding(dtype: torch.dtype, shape: tuple[int, ...]):
    q, k = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)
    check(apply_rotary_emb, q, k, frequencies(shape[1], shape[3]))


class Rotated(nn.Module):
    """A table of frequencies in a buffer, of which a call reads a part."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("freqs_cis", frequencies(64, 16), persistent=False)
        self.wq = nn.Linear(32, 32)

    def forward(self, x, start: int = 0):
        q = self.wq(x).view(*x.shape[:2], 2, 16)
        q, k = apply_rotary_emb(q, q, self.freqs_cis[start : start + x.shape[1]])
        return q.transpose(1, 2) @ k.transpose(1, 2).mT


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_table_in_a_buffer_and_changing_lengths(dtype: torch.dtype):
    model = Rotated()
    model.wq.to(dtype)
    run, host = compiled(model)
    with torch.no_grad():
        for length, start in ((8, 0), (9, 0), (17, 3), (1, 20)):
            x = torch.randn(2, length, 32, dtype=dtype)
            assert_like(run(x, start), model(x, start))
    assert host() == []


def test_gradients():
    model, x = Rotated(), torch.randn(2, 8, 32)
    run, host = compiled(model)
    run(x).square().mean().backward()
    got = model.wq.weight.grad.clone()
    model.zero_grad()
    model(x).square().mean().backward()
    assert (got - model.wq.weight.grad).norm() < 0.02 * model.wq.weight.grad.norm()
    assert host() == []


def test_gradients_of_complex_arithmetic():
    def loss(a, b):
        return ((a * b.conj() + a / (b + 4)).abs() + (a @ b.mH).real.sum()).mean()

    a, b = [each.requires_grad_() for each in (z(3, 4), z(3, 4))]
    want = torch.autograd.grad(loss(a, b), (a, b))
    run, host = compiled(loss)
    got = torch.autograd.grad(run(a, b), (a, b))
    for mine, theirs in zip(got, want):
        assert_like(mine, theirs)
    assert host() == []
