"""Prefill attention."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.emulator.timing.families.specs import BFP8, priced, tensor
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.ops.attention.whole_sequences import Settings
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of


def chunks(q: int = 128, k: int = 128, grid: tuple[int, int] = (8, 8)) -> SimpleNamespace:
    return SimpleNamespace(
        q_chunk_size=q, k_chunk_size=k, compute_with_storage_grid_size=SimpleNamespace(x=grid[0], y=grid[1])
    )


def attention(
    heads: int,
    length: int,
    depth: int = 128,
    *,
    board: str = "n150",
    causal: bool = True,
    program: object = None,
    dtype: object = None,
    **settings: object,
) -> Launch:
    q = tensor(1, heads, length, depth, **({"dtype": dtype} if dtype else {}))
    given = Settings(causal, None, None, program or chunks(), None, **settings)
    named: tuple[tuple[str, Spec], ...] = (("q", q), ("k", q), ("v", q))
    (launch,) = launches_of(Call("ttnn.prim.sdpa", named, (q,), {"settings": given}, find_board(board)))
    return launch


# tt-metal v0.77.0: tests/nightly/blackhole/sdpa/test_scaled_dot_product_attention_sprint.py, SDPA_PERF_CHECK_CONFIGS
@pytest.mark.parametrize(("length", "q", "utilisation"), [(9472, 288, 0.70), (2368, 224, 0.575)])
def test_utilisation_that_the_library_expects(length: int, q: int, utilisation: float) -> None:
    launch = attention(10, length, board="p150", causal=False, program=chunks(q, 512, (11, 10)))
    ideal = 4 * length**2 * 128 * 10 / (110 * 2048 * 1.35)
    assert ideal / launch.kernel_ns == pytest.approx(utilisation, rel=0.10)


def test_causal_attention_skips_half_of_the_keys() -> None:
    every, half = attention(32, 4096, causal=False), attention(32, 4096)
    assert half.compute_ns == pytest.approx(every.compute_ns / 2, rel=0.05)
    assert half.flops == every.flops / 2


def test_causal_attention_reads_its_keys_on_every_core() -> None:
    """Without causality the cores of a head pass its keys on."""
    every, half = attention(32, 4096, causal=False), attention(32, 4096)
    assert half.dram_bytes == pytest.approx(every.dram_bytes, rel=0.2)
    assert half.bound.name == "DRAM"


def test_four_times_the_work_for_twice_the_length() -> None:
    short, long = attention(16, 2048), attention(16, 4096)
    assert long.kernel_ns == pytest.approx(4 * short.kernel_ns, rel=0.15)


def test_small_chunks_take_longer() -> None:
    assert attention(16, 2048, program=chunks(32, 32)).kernel_ns > 2 * attention(16, 2048).kernel_ns


def test_a_window_limits_the_keys() -> None:
    assert attention(16, 8192, window=512).kernel_ns < attention(16, 8192).kernel_ns / 3


def test_cores_are_those_of_the_chunks() -> None:
    assert attention(1, 256, causal=False).cores == 2
    assert attention(8, 8192, causal=False).cores == 64
    assert attention(8, 8192, causal=False, program=chunks(grid=(4, 4))).cores == 16


def test_one_head_is_bound_by_its_cores() -> None:
    """A head of four chunks takes as long as sixteen heads of four chunks on 64 cores."""
    one, many = attention(1, 512, causal=False), attention(16, 512, causal=False)
    assert many.kernel_ns == pytest.approx(one.kernel_ns, rel=0.35)


def test_block_floats_need_less_bandwidth() -> None:
    assert attention(16, 2048, dtype=BFP8).dram_bytes < 0.6 * attention(16, 2048).dram_bytes


def test_records_of_calls_are_timed_like_calls() -> None:
    q = tensor(1, 16, 2048, 128)
    record = {
        "is_causal": True,
        "program_config": {"q_chunk_size": 128, "k_chunk_size": 128, "compute_with_storage_grid_size": [8, 8]},
        "compute_kernel_config": None,
        "window": 0,
    }
    named = (("q", q), ("k", q), ("v", q))
    (launch,) = launches_of(Call("ttnn.prim.sdpa", named, (q,), {"settings": record}, find_board("n150")))
    assert launch.kernel_ns == attention(16, 2048).kernel_ns


def test_joint_attention_sees_both_sequences() -> None:
    image, text = tensor(1, 16, 2048, 128), tensor(1, 16, 512, 128)
    (joint,) = priced(
        "ttnn.transformer.joint_scaled_dot_product_attention",
        *[image] * 3,
        *[text] * 3,
        outputs=(image, text),
        program_config=chunks(),
    )
    alone = attention(16, 2560, causal=False)
    assert joint.kernel_ns > alone.kernel_ns
    assert joint.program == "JointSDPADeviceOperation"
