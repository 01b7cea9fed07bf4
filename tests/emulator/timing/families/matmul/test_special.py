"""Products with kernels of their own."""

from __future__ import annotations

from types import SimpleNamespace

from tests.emulator.timing.families.specs import nanoseconds, tensor


def test_skipped_batches_take_no_time() -> None:
    a, b = tensor(1, 1, 32, 2048), tensor(1, 32, 2048, 1024)
    out, program = tensor(1, 32, 32, 1024), SimpleNamespace(per_core_N=1, in0_block_w=8)
    few, all_ = (
        nanoseconds("ttnn.sparse_matmul", a, b, out=out, program_config=program, nnz=count) for count in (4, 32)
    )
    assert 6 * few < all_ < 9 * few


def test_a_matrix_per_user() -> None:
    name = "ttnn.experimental.attn_matmul"
    a, short, long = tensor(1, 32, 32, 64), tensor(32, 1, 64, 256), tensor(32, 1, 64, 4096)
    small = nanoseconds(name, a, short, out=tensor(1, 32, 32, 256))
    large = nanoseconds(name, a, long, out=tensor(1, 32, 32, 4096))
    assert large > 4 * small
