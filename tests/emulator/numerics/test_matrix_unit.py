"""The matrix unit's model compared with exact arithmetic and with itself."""

from __future__ import annotations

import pytest
import torch

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.numerics.mode import numerics
from ttnn_emulator.numerics.units.matrix_unit import MathConfig, matmul, matmul_exact, matmul_fast


def operands(seed: int, rows: int = 32, inner: int = 64, columns: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(shape, generator=generator).bfloat16().float()  # noqa: E731
    return make(rows, inner), make(inner, columns)


FIDELITIES = [fidelity for fidelity in MathFidelity if fidelity is not MathFidelity.Invalid]


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_small_integers_are_exact(fidelity: MathFidelity) -> None:
    left = torch.randint(-7, 8, (16, 48)).float()
    right = torch.randint(-7, 8, (48, 16)).float()
    assert torch.equal(matmul_exact(left, right, MathConfig(fidelity, fp32_acc=True)), left @ right)


@pytest.mark.parametrize("seed", range(3))
def test_higher_fidelity_is_more_accurate(seed: int) -> None:
    left, right = operands(seed)
    exact = left.double() @ right.double()
    errors = [
        (matmul_exact(left, right, MathConfig(fidelity, fp32_acc=True)).double() - exact).abs().mean().item()
        for fidelity in (MathFidelity.LoFi, MathFidelity.HiFi2, MathFidelity.HiFi4)
    ]
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("seed", range(3))
def test_float32_accumulation_is_more_accurate(seed: int) -> None:
    left, right = operands(seed, inner=512)
    exact = left.double() @ right.double()
    error = {
        wide: (matmul_exact(left, right, MathConfig(MathFidelity.HiFi4, fp32_acc=wide)).double() - exact).abs().mean()
        for wide in (True, False)
    }
    assert error[True] * 10 < error[False]


def test_fast_products_read_the_same_bits() -> None:
    left, right = operands(0)
    for fidelity in (MathFidelity.LoFi, MathFidelity.HiFi2, MathFidelity.HiFi4):
        config = MathConfig(fidelity, fp32_acc=True)
        gap = (matmul_exact(left, right, config) - matmul_fast(left, right, config)).abs().max().item()
        assert gap < 0.05


def test_modes() -> None:
    left, right = operands(1)
    config = MathConfig(MathFidelity.HiFi2)
    with numerics("exact"):
        assert torch.equal(matmul(left, right, config), matmul_exact(left, right, config))
    with numerics("fast"):
        assert torch.equal(matmul(left, right, config), matmul_fast(left, right, config))
    with pytest.raises(ValueError, match="auto, exact, fast"), numerics("sloppy"):
        pass


def test_batches() -> None:
    left, right = operands(2)
    config = MathConfig(MathFidelity.HiFi4)
    stacked = matmul(torch.stack([left, 2 * left]), right, config)
    assert torch.equal(stacked, torch.stack([matmul(left, right, config), matmul(2 * left, right, config)]))
