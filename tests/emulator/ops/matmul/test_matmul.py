"""Matrix products compared with torch, with tolerances by dtype, fidelity and accumulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import each_dtype, pcc, stored, upload, values
from ttnn_emulator.errors import EmulatorError, InvalidArgument
from ttnn_emulator.execution.operation_table import OPERATIONS
from ttnn_emulator.numerics.mode import numerics

LEAST_PCC = {"bfloat16": 0.999, "float32": 0.9999, "bfloat8_b": 0.999, "bfloat4_b": 0.95}
# Mean error relative to the product's standard deviation; float32 operands keep 10 fraction bits.
MEAN_ERROR = {"bfloat16": 0.01, "float32": 0.002, "bfloat8_b": 0.02, "bfloat4_b": 0.2}
CORES = ttnn.CoreCoord(8, 8)


def precise(fidelity: Any = ttnn.MathFidelity.HiFi4, **more: Any) -> Any:
    settings = {"math_approx_mode": False, "fp32_dest_acc_en": True, "packer_l1_acc": True} | more
    return ttnn.WormholeComputeKernelConfig(math_fidelity=fidelity, **settings)


@dataclass(frozen=True)
class Product:
    """One call and its torch reference on the same values in float32."""

    name: str  # the operation, and the variant of the call
    call: Callable[..., Any]
    reference: Callable[..., torch.Tensor]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...] = ("bfloat16", "float32")
    config: dict[str, Any] = field(default_factory=lambda: {"compute_kernel_config": precise()})

    def __str__(self) -> str:
        return self.name


def operation_of(name: str) -> Any:
    """The first word of a row's name is the operation."""
    return OPERATIONS[f"ttnn.{name.split(' ')[0].rstrip(',')}"]


def product(
    name: str, *shapes: tuple[int, ...], reference: Any = torch.matmul, dtypes: Any = None, **more: Any
) -> Product:
    """A product by name; `more` is passed to the call."""
    op = operation_of(name)
    call = lambda *tensors, **config: op(*tensors, **more, **config)  # noqa: E731
    return Product(name, call, reference, shapes, dtypes or ("bfloat16", "float32"))


def with_bias(name: str, *shapes: tuple[int, ...], keyword: str = "bias", **more: Any) -> Product:
    op = operation_of(name)
    reference = more.pop("reference", lambda a, b, c: a @ b + c)
    dtypes = more.pop("dtypes", ("bfloat16", "float32"))
    return Product(
        name, lambda a, b, c, **config: op(a, b, **{keyword: c}, **more, **config), reference, shapes, dtypes
    )


def users_first(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """[1, heads, users, K] × [users, groups, K, N]: the rows of each user times the matrices of that user."""
    heads = b.repeat_interleave(a.shape[1] // b.shape[1], dim=1)
    return (a.permute(2, 1, 0, 3) @ heads).permute(2, 1, 0, 3)


ROWS = (
    product("matmul", (32, 64), (64, 32)),
    product("matmul of odd sizes", (5, 33), (33, 70)),
    product("matmul of one row", (1, 100), (100, 7)),
    product("matmul of batches", (2, 3, 17, 40), (2, 3, 40, 33)),
    product("matmul with one matrix for all batches", (2, 3, 17, 40), (40, 33)),
    product("matmul of rank 5", (1, 2, 3, 5, 33), (33, 64)),
    product("matmul with a vector", (40, 50), (50,)),
    product("matmul of a vector", (50,), (50, 40)),
    product("matmul of two vectors", (64,), (64,), dtypes=("float32",)),
    product("matmul, deep", (32, 700), (700, 40)),
    product("matmul, first transposed", (40, 5), (40, 33), reference=lambda a, b: a.mT @ b, transpose_a=True),
    product("matmul, second transposed", (5, 40), (33, 40), reference=lambda a, b: a @ b.mT, transpose_b=True),
    product(
        "matmul, both transposed, batched",
        (2, 40, 70),
        (2, 33, 40),
        reference=lambda a, b: a.mT @ b.mT,
        transpose_a=True,
        transpose_b=True,
    ),
    product("matmul with relu", (33, 64), (64, 40), reference=lambda a, b: (a @ b).relu(), activation="relu"),
    product("matmul with silu", (33, 64), (64, 40), reference=lambda a, b: functional.silu(a @ b), activation="silu"),
    product("matmul on few cores", (64, 96), (96, 64), core_grid=ttnn.CoreGrid(y=1, x=2)),
    product("linear without a bias", (5, 33), (33, 70)),
    with_bias("linear", (5, 33), (33, 70), (70,)),
    with_bias("linear, bias as a row", (64, 96), (96, 64), (1, 64)),
    with_bias("linear of batches", (2, 3, 17, 40), (40, 33), (33,)),
    with_bias("linear with a full bias", (64, 96), (96, 64), (64, 64)),
    with_bias(
        "linear, transposed", (5, 40), (33, 40), (1, 33), reference=lambda a, b, c: a @ b.mT + c, transpose_b=True
    ),
    with_bias(
        "linear with gelu",
        (5, 40),
        (40, 33),
        (33,),
        reference=lambda a, b, c: functional.gelu(a @ b + c),
        activation="gelu",
    ),
    with_bias(
        "linear with relu, fused",
        (64, 96),
        (96, 64),
        (64,),
        reference=lambda a, b, c: (a @ b + c).relu(),
        activation="relu",
        core_grid=ttnn.CoreGrid(y=2, x=2),
    ),
    product("addmm", (64, 40), (64, 96), (96, 40), reference=torch.addmm),
    product(
        "addmm, scaled",
        (5, 40),
        (5, 33),
        (33, 40),
        reference=lambda c, a, b: 0.5 * c - 2.0 * (a @ b),
        alpha=-2.0,
        beta=0.5,
    ),
    product("experimental.minimal_matmul", (64, 96), (96, 128), dtypes=("bfloat16",)),
    with_bias(
        "experimental.minimal_matmul with a bias",
        (64, 96),
        (96, 128),
        (1, 128),
        keyword="bias_tensor",
        dtypes=("bfloat16",),
    ),
    product("moreh_matmul", (2, 3, 17, 40), (3, 40, 33), dtypes=("bfloat16",)),
    product(
        "moreh_matmul, transposed",
        (40, 17),
        (33, 40),
        reference=lambda a, b: a.mT @ b.mT,
        transpose_input=True,
        transpose_other=True,
        dtypes=("bfloat16",),
    ),
    product("moreh_bmm", (3, 33, 40), (3, 40, 17), dtypes=("bfloat16",)),
    with_bias(
        "moreh_linear",
        (2, 17, 40),
        (33, 40),
        (1, 33),
        reference=lambda a, b, c: a @ b.mT + c,
        dtypes=("bfloat16",),
    ),
    product(
        "moreh_dot",
        (1, 1, 1, 100),
        (1, 1, 1, 100),
        reference=lambda a, b: (a * b).sum().reshape(1, 1, 1, 1),
        dtypes=("bfloat16",),
    ),
    product(
        "experimental.attn_matmul",
        (1, 8, 32, 64),
        (32, 1, 64, 96),
        reference=users_first,
        compute_with_storage_grid_size=CORES,
        dtypes=("bfloat16",),
    ),
    product(
        "experimental.group_attn_matmul",
        (1, 8, 32, 64),
        (32, 2, 64, 96),
        reference=users_first,
        compute_with_storage_grid_size=CORES,
        dtypes=("bfloat16",),
    ),
    product(
        "experimental.attn_matmul_from_cache",
        (1, 8, 32, 64),
        (32, 1, 128, 64),
        reference=lambda a, b: users_first(a, b[:, :, :96].mT),
        num_tokens=96,
        transpose_hw=True,
        compute_with_storage_grid_size=CORES,
        dtypes=("bfloat16",),
    ),
)


def run(row: Product, stored_as: str, seed: int, device: Any, **config: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The results of the device and of torch for random operands."""
    tensors = [
        upload(values(shape, -2, 2, "float32", seed + number), stored_as, "TILE", device)
        for number, shape in enumerate(row.shapes)
    ]
    reference = row.reference(*[stored(tensor) for tensor in tensors])
    return stored(row.call(*tensors, **{**row.config, **config})), reference


def check(row: Product, dtype: str, seed: int, device: Any) -> None:
    ours, reference = run(row, dtype, seed, device)
    assert list(ours.shape) == list(reference.shape)
    # For a single sum, the expected spread of its terms, since its value may be close to zero.
    spread = reference.std().item() if reference.numel() > 1 else row.shapes[0][-1] ** 0.5 * 4 / 3
    off = (ours - reference).abs().mean().item() / spread
    assert off <= MEAN_ERROR[dtype], f"mean error of {off:.4f} × {spread:.3g}"
    if reference.numel() > 8:
        assert pcc(ours, reference) >= LEAST_PCC[dtype]


@each_dtype(ROWS)
def test_against_torch(row, dtype, device):
    for seed in (0, 10):
        check(row, dtype, seed, device)


WITH_TESTS_OF_THEIR_OWN = ("decode_matmul", "minimal_matmul_addcmul", "mla_output_projection")  # test_fused_products


def test_every_operation_has_a_row():
    modules = {name for name in {op.function.__module__ for op in OPERATIONS.values()} if ".ops.matmul" in name}
    modules |= {"ttnn_emulator.ops.moreh.products"}
    modules -= {f"ttnn_emulator.ops.matmul.{name}" for name in WITH_TESTS_OF_THEIR_OWN}
    ours = {name for name, op in OPERATIONS.items() if op.function.__module__ in modules}
    tested = {operation_of(row.name).name for row in ROWS}
    by_themselves = {
        "ttnn.matmul_batched_weights",
        "ttnn.sparse_matmul",
        "ttnn.experimental.minimal_matmul_split",
        "ttnn.moreh_bmm_backward",
        "ttnn.moreh_dot_backward",
        "ttnn.moreh_linear_backward",
        "ttnn.moreh_matmul_backward",
    }
    assert ours - tested == by_themselves


sizes = st.integers(1, 70)


@given(m=sizes, k=sizes, n=sizes, batch=st.integers(0, 3), bias=st.booleans(), seed=st.integers(0, 999),
       dtype=st.sampled_from(("bfloat16", "float32")))  # fmt: skip
def test_any_sizes(m, k, n, batch, bias, seed, dtype):
    left = (batch, m, k) if batch else (m, k)
    row = with_bias("linear", left, (k, n), (n,)) if bias else product("matmul", left, (k, n))
    with ttnn.open_device(device_id=0) as device:
        ours, reference = run(row, dtype, seed, device)
    assert list(ours.shape) == list(reference.shape)
    # The largest error due to the operands' 10 bits and truncated partial products (float32), or to the result's
    # 8 bits (bfloat16).
    terms = row.reference(
        *[values(shape, -2, 2, "float32", seed + number).abs() for number, shape in enumerate(row.shapes)]
    )
    bound = 4.0 * 2.0**-10 * terms if dtype == "float32" else 2.0**-8 * (reference.abs().max() + 1.0)
    assert torch.all((ours - reference).abs() <= bound)


@given(m=sizes, k=sizes, n=sizes)
def test_padding_does_not_leak(m, k, n):
    """A product of ones counts the inner dimension, whatever the tile padding."""
    with ttnn.open_device(device_id=0) as device:
        ones = [upload(torch.ones(shape), "bfloat16", "TILE", device) for shape in ((m, k), (k, n))]
        filled = [ttnn.fill_implicit_tile_padding(tensor, 1000.0) for tensor in ones]
        assert torch.all(stored(ttnn.matmul(*ones)) == k)
        assert torch.all(stored(ttnn.matmul(ones[0], filled[1])) == k)


BLOCK_PAIRS = (
    ("bfloat16", "bfloat8_b"),
    ("bfloat8_b", "bfloat8_b"),
    ("bfloat16", "bfloat4_b"),
    ("float32", "bfloat16"),
)


@pytest.mark.parametrize("pair", BLOCK_PAIRS, ids=str)
def test_dtypes_may_differ(pair, device):
    a = upload(values((33, 64), -2, 2, "float32", 1), pair[0], "TILE", device)
    b = upload(values((64, 70), -2, 2, "float32", 2), pair[1], "TILE", device)
    result = ttnn.matmul(a, b, compute_kernel_config=precise())
    assert result.dtype == a.dtype
    reference = stored(a) @ stored(b)
    assert (stored(result) - reference).abs().mean() <= 0.02 * reference.std()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "bfloat8_b", "bfloat4_b"])
def test_the_output_has_the_requested_dtype(dtype, device):
    row = product("matmul", (33, 64), (64, 70))
    ours, reference = run(row, "bfloat16", 3, device, dtype=getattr(ttnn, dtype))
    assert (ours - reference).abs().mean() <= MEAN_ERROR[dtype] * reference.std()


def mean_error(config: Any, device: Any, inner: int = 256, dtype: str = "bfloat16") -> float:
    row = product("matmul", (64, inner), (inner, 64))
    ours, reference = run(row, dtype, 7, device, compute_kernel_config=config, dtype=ttnn.float32)
    return (ours - reference).abs().mean().item()


def test_higher_fidelities_are_more_accurate(device):
    fidelities = (ttnn.MathFidelity.LoFi, ttnn.MathFidelity.HiFi2, ttnn.MathFidelity.HiFi4)
    low, middle, high = (mean_error(precise(fidelity), device) for fidelity in fidelities)
    assert low > 4 * middle and middle > 4 * high


def test_a_32_bit_destination_register_is_more_accurate(device):
    narrow, wide = (mean_error(precise(fp32_dest_acc_en=kept), device, 1024) for kept in (False, True))
    assert narrow > 20 * wide


def test_batches_are_computed_one_by_one(device):
    a, b = (upload(values((3, 33, 40), -2, 2, "float32", seed), "bfloat16", "TILE", device) for seed in (1, 2))
    whole = stored(ttnn.matmul(a, ttnn.transpose(b, -1, -2)))
    for number in range(3):
        left, right = (upload(stored(x)[number], "bfloat16", "TILE", device) for x in (a, b))
        assert torch.equal(whole[number], stored(ttnn.matmul(left, right, transpose_b=True)))


PROGRAMS = {
    "2d": lambda: ttnn.MatmulMultiCoreReuseMultiCastProgramConfig(
        compute_with_storage_grid_size=(2, 2),
        in0_block_w=2,
        out_subblock_h=1,
        out_subblock_w=2,
        per_core_M=2,
        per_core_N=2,
        transpose_mcast=False,
        fused_activation=None,
    ),
    "1d": lambda: ttnn.MatmulMultiCoreReuseMultiCast1DProgramConfig(
        compute_with_storage_grid_size=(4, 1),
        in0_block_w=1,
        out_subblock_h=1,
        out_subblock_w=1,
        per_core_M=4,
        per_core_N=1,
        fuse_batch=True,
        fused_activation=None,
        mcast_in0=True,
    ),
    "reuse": lambda: ttnn.MatmulMultiCoreReuseProgramConfig(
        compute_with_storage_grid_size=(4, 1),
        in0_block_w=2,
        out_subblock_h=1,
        out_subblock_w=4,
        per_core_M=1,
        per_core_N=4,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_configs_only_change_the_order_of_sums(name, device):
    row = product("matmul", (128, 128), (128, 128))
    ours, reference = run(row, "bfloat16", 5, device, program_config=PROGRAMS[name]())
    assert (ours - reference).abs().mean() <= MEAN_ERROR["bfloat16"] * reference.std()


def test_a_program_config_that_does_not_fit_is_rejected(device):
    with pytest.raises(InvalidArgument, match=r"ttnn\.matmul.*Kt \(3\) must be divisible by in0_block_w \(2\)"):
        run(product("matmul", (128, 96), (96, 128)), "bfloat16", 5, device, program_config=PROGRAMS["2d"]())


def test_sharded_operands(device):
    memory = ttnn.create_sharded_memory_config((1, 1, 128, 64), ttnn.CoreGrid(y=1, x=4), ttnn.ShardStrategy.HEIGHT)
    a = upload(values((1, 1, 128, 64), -2, 2, "float32", 1), "bfloat16", "TILE", device)
    b = upload(values((64, 96), -2, 2, "float32", 2), "bfloat16", "TILE", device)
    result = ttnn.matmul(ttnn.to_memory_config(a, memory), b, memory_config=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG)
    assert result.memory_config().is_sharded()
    reference = stored(a) @ stored(b)
    assert (stored(result) - reference).abs().mean() <= 0.02 * reference.std()


def test_output_tensor_receives_the_result(device):
    a, b = (upload(torch.eye(64), "bfloat16", "TILE", device) for _ in range(2))
    target = upload(torch.zeros(64, 64), "bfloat16", "TILE", device)
    result = ttnn.matmul(a, b, optional_output_tensor=target)
    assert result.buffer_address() == target.buffer_address() and torch.equal(stored(target), torch.eye(64))


def test_infinities_and_nan_affect_only_their_rows(device):
    a = torch.ones(3, 32)
    a[1, 5] = float("inf")
    result = stored(
        ttnn.matmul(upload(a, "bfloat16", "TILE", device), upload(torch.ones(32, 32), "bfloat16", "TILE", device))
    )
    assert torch.all(result[[0, 2]] == 32) and not result[1].isfinite().any()


def test_large_products_round_like_small_ones(device):
    row = product("matmul", (96, 128), (128, 96))
    results = []
    for mode in ("exact", "fast"):
        with numerics(mode):
            results.append(run(row, "bfloat16", 9, device)[0])
    assert torch.allclose(*results, rtol=2.0**-7, atol=0.05)


def test_sparse_matmul_skips_batches(device):
    a = upload(values((1, 1, 32, 64), -2, 2, "float32", 1), "bfloat16", "TILE", device)
    b = upload(values((1, 4, 64, 64), -2, 2, "float32", 2), "bfloat16", "TILE", device)
    flags = torch.tensor([1.0, 0.0, 1.0, 0.0]).reshape(1, 1, 1, 4)
    program = ttnn.MatmulMultiCoreReuseMultiCast1DProgramConfig(
        compute_with_storage_grid_size=(2, 1),
        in0_block_w=2,
        out_subblock_h=1,
        out_subblock_w=1,
        per_core_M=1,
        per_core_N=1,
        fuse_batch=False,
        fused_activation=None,
        mcast_in0=True,
    )
    sparsity = upload(flags, "bfloat16", "ROW_MAJOR", device)
    result = stored(ttnn.sparse_matmul(a, b, sparsity=sparsity, nnz=2, program_config=program))
    reference = (stored(a) @ stored(b)) * flags.reshape(1, 4, 1, 1)
    assert list(result.shape)[-2:] == [32, 64]
    assert (result.reshape(4, 32, 64) - reference[0]).abs().mean() <= 0.02 * reference.std()
    assert torch.all(result.reshape(4, 32, 64)[[1, 3]] == 0)


def test_a_product_split_into_columns(device):
    a = upload(values((64, 96), -2, 2, "float32", 1), "bfloat16", "TILE", device)
    b = upload(values((96, 192), -2, 2, "float32", 2), "bfloat16", "TILE", device)
    parts = ttnn.experimental.minimal_matmul_split(a, b, chunks=3)
    whole = ttnn.experimental.minimal_matmul(a, b)
    assert torch.equal(torch.cat([stored(part) for part in parts], dim=-1), stored(whole))


def test_gradients_of_products(device):
    """moreh_*_backward compared with autograd."""
    shapes = {"moreh_bmm_backward": ((3, 32, 40), (3, 40, 64)), "moreh_matmul_backward": ((33, 40), (40, 64))}
    for name, (left, right) in shapes.items():
        a, b = (upload(values(shape, -1, 1, "float32", 4), "bfloat16", "TILE", device) for shape in (left, right))
        ours_a, ours_b = stored(a).requires_grad_(), stored(b).requires_grad_()
        product_ = ours_a @ ours_b
        grad = upload(values(tuple(product_.shape), -1, 1, "float32", 5), "bfloat16", "TILE", device)
        product_.backward(stored(grad))
        operand_names = ("input", "mat2") if name == "moreh_bmm_backward" else ("input_a", "input_b")
        targets = {
            f"{key}_grad": upload(torch.zeros(shape), "bfloat16", "TILE", device)
            for key, shape in zip(operand_names, (left, right))
        }
        getattr(ttnn, name)(grad, a, b, are_required_outputs=(True, True), **targets)
        for target, expected in zip(targets.values(), (ours_a.grad, ours_b.grad)):
            assert (stored(target) - expected).abs().mean() <= 0.04 * expected.std()  # LoFi is the default


def test_gradients_of_linear_and_dot(device):
    x, weight, grad = ((2, 32, 64), (96, 64), (2, 32, 96))
    tensors = [
        upload(values(shape, -1, 1, "float32", n), "bfloat16", "TILE", device)
        for n, shape in enumerate((grad, x, weight))
    ]
    targets = {
        "input_grad": upload(torch.zeros(x), "bfloat16", "TILE", device),
        "weight_grad": upload(torch.zeros(weight), "bfloat16", "TILE", device),
    }
    ttnn.moreh_linear_backward(*tensors, are_required_outputs=(True, True, False), **targets)
    given_, input_, weight_ = (stored(tensor) for tensor in tensors)
    for target, expected in zip(targets.values(), (given_ @ weight_, torch.einsum("bmn,bmk->nk", given_, input_))):
        assert (stored(target) - expected).abs().mean() <= 0.02 * expected.std()
    row = (1, 1, 1, 64)
    a, b = (upload(values(row, -1, 1, "float32", n), "bfloat16", "TILE", device) for n in (1, 2))
    two = upload(torch.full((1, 1, 1, 1), 2.0), "bfloat16", "TILE", device)
    result = upload(torch.zeros(row), "bfloat16", "TILE", device)
    ttnn.moreh_dot_backward(two, a, b, input_grad=result)
    assert torch.equal(stored(result), 2 * stored(b))


@pytest.mark.parametrize(
    ("left", "right"), [((32, 64), (65, 32)), ((2, 32, 64), (3, 64, 32)), ((), (32, 32)), ((32, 64), (2, 2, 64, 32))]
)
def test_incompatible_shapes(left, right, device):
    a, b = (upload(torch.ones(shape), "bfloat16", "TILE", device) for shape in (left, right))
    with pytest.raises(InvalidArgument, match=r"ttnn\.matmul"):
        ttnn.matmul(a, b)


def test_integers_and_row_major_are_rejected(device):
    a = upload(torch.ones(32, 32), "bfloat16", "TILE", device)
    for dtype, layout in (("int32", "TILE"), ("uint16", "TILE"), ("bfloat16", "ROW_MAJOR")):
        with pytest.raises(InvalidArgument, match=r"ttnn\.matmul"):
            ttnn.matmul(a, upload(torch.ones(32, 32), dtype, layout, device))
    with pytest.raises(EmulatorError):
        ttnn.matmul(a, ttnn.from_torch(torch.ones(32, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT))
