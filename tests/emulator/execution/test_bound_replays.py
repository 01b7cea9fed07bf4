"""Bound replays of small traces: the same bits as unbound ones, and their private memory is not visible."""

from __future__ import annotations

import dataclasses
import functools
import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from ttnn_emulator.execution import bound_replay
from ttnn_emulator.numerics.mode import numerics

HOSTILE = torch.tensor(
    [0x7FC00000, -0x400000, 0x7F800001, 0x7F800000, -0x800000, 0, -0x80000000, 1, -0x7FFFFFFF, 0x007FFFFF, 0x00800000,
     0x7F7FFFFF, -0x800001, 0x3F808000, 0x3F818000, 0x3F800000],
    dtype=torch.int32,
).view(torch.float32)  # fmt: skip


def values(shape: Sequence[int], seed: int, hostile: float = 0.0) -> torch.Tensor:
    """Normally distributed values, some replaced by NaN, infinities, signed zeros, denormals and ties."""
    generator = torch.Generator().manual_seed(seed)
    made = torch.randn(tuple(shape), generator=generator)
    chosen = HOSTILE[torch.randint(len(HOSTILE), tuple(shape), generator=generator)]
    return torch.where(torch.rand(tuple(shape), generator=generator) < hostile, chosen, made)


def on_host(tensor: torch.Tensor, dtype: Any = ttnn.bfloat16, layout: Any = ttnn.TILE_LAYOUT) -> Any:
    return ttnn.from_torch(tensor, dtype=dtype, layout=layout)


def captured(device: Any, program: Callable[[], Any]) -> tuple[Any, Any]:
    program()
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    result = program()
    ttnn.end_trace_capture(device, trace, cq_id=0)
    return trace, result


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.int16 if tensor.dtype is torch.bfloat16 else torch.int32)


def bound_of(device: Any, trace: Any) -> bound_replay.BoundTrace | None:
    return device.traces[trace].replays.bound


def calls_compute(run: Any) -> bool:
    return getattr(run, "func", None) is bound_replay._calculate_into


# -- programs ---------------------------------------------------------------------------------------------------------

PRECISE = ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.HiFi3, fp32_dest_acc_en=True)
RELU, EXP, LOG = (ttnn.UnaryWithParam(getattr(ttnn.UnaryOpType, name)) for name in ("RELU", "EXP", "LOG"))
OF_IMAGES: dict[str, Any] = {
    "in_channels": 4,
    "out_channels": 8,
    "batch_size": 1,
    "input_height": 6,
    "input_width": 6,
    "kernel_size": (3, 3),
    "stride": (1, 1),
    "dilation": (1, 1),
    "groups": 1,
    "compute_config": PRECISE,
}


def weight(device: Any, shape: Sequence[int], dtype: Any, seed: int = 9) -> Any:
    return ttnn.from_torch(values(shape, seed), dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)


def convolution(device: Any, dtype: Any, activation: Any = None, padding: Sequence[int] = (0, 0)) -> Callable:
    filters, row = (ttnn.from_torch(values(shape, 5), dtype=ttnn.bfloat16) for shape in ((8, 4, 3, 3), (1, 1, 1, 8)))
    config = ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16, activation=activation, config_tensors_in_dram=True)
    common = {**OF_IMAGES, "padding": tuple(padding), "device": device, "conv_config": config}
    shaped = ttnn.from_torch(torch.zeros(1, 1, 36, 4), dtype=ttnn.bfloat16, device=device)
    _, [filters, row] = ttnn.conv2d(
        input_tensor=shaped, weight_tensor=filters, bias_tensor=row, dtype=dtype, return_weights_and_bias=True, **common
    )
    return lambda x: ttnn.conv2d(input_tensor=x, weight_tensor=filters, bias_tensor=row, dtype=dtype, **common)


def pool(x: Any, padding: int) -> Any:
    return ttnn.max_pool2d(
        input_tensor=x, batch_size=1, input_h=6, input_w=6, channels=4, kernel_size=[3, 3], stride=[2, 2],
        padding=[padding, padding], dilation=[1, 1],
    )  # fmt: skip


def log_softmax(x: Any) -> Any:
    most = ttnn.max(x, dim=-1, keepdim=True, compute_kernel_config=PRECISE)
    exponentials = ttnn.subtract(x, most, activations=[EXP])
    total = ttnn.sum(exponentials, dim=-1, keepdim=True, compute_kernel_config=PRECISE)
    end = ttnn.add(most, total, input_tensor_b_activations=[LOG])
    return ttnn.subtract(x, end)


def product(device: Any, dtype: Any, **given: Any) -> Callable:
    matrix, row = weight(device, (36, 20), ttnn.bfloat16), weight(device, (1, 20), dtype)
    return lambda x: ttnn.linear(x, matrix, bias=row, compute_kernel_config=PRECISE, **given)


def with_weight(device: Any, dtype: Any, function: Callable, shape: Sequence[int]) -> Callable:
    other = weight(device, shape, dtype)
    return lambda x: function(x, other)


def floored(x: Any, other: Any) -> Any:
    return ttnn.div(x, other, rounding_mode="floor")


def normed(device: Any, dtype: Any, function: Callable, adds: bool = False) -> Callable:
    row = weight(device, (1, 40), dtype)
    given = {"residual_input_tensor": weight(device, (3, 40), dtype)} if adds else {}
    return lambda x: function(x, epsilon=1e-5, weight=row, bias=row, compute_kernel_config=PRECISE, **given)


def stateless(function: Callable) -> Callable:
    return lambda device, dtype: function


# A row: input shape, layout, and a function of device and dtype that returns the program.
ROWS: dict[str, tuple[tuple[int, ...], Any, Callable]] = {
    "reshape": ((3, 8), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.reshape(ttnn.relu(x), (2, 12)))),
    "permute": ((3, 8), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.relu(ttnn.permute(x, (1, 0))))),
    "relu": ((3, 40), ttnn.TILE_LAYOUT, stateless(ttnn.relu)),
    "gelu": ((3, 40), ttnn.TILE_LAYOUT, stateless(ttnn.gelu)),
    "add": ((3, 40), ttnn.TILE_LAYOUT, functools.partial(with_weight, function=ttnn.add, shape=(3, 40))),
    "add a row": ((3, 40), ttnn.TILE_LAYOUT, functools.partial(with_weight, function=ttnn.add, shape=(1, 40))),
    "multiply": ((3, 40), ttnn.TILE_LAYOUT, functools.partial(with_weight, function=ttnn.multiply, shape=(3, 1))),
    "subtract": ((3, 40), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.subtract(x, 0.7))),
    "from a number": ((3, 40), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.rsub(x, 0.7))),
    "twice the same": ((3, 40), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.multiply(x, x))),
    "add and relu": ((3, 40), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.add(x, x, activations=[RELU]))),
    "divide": ((3, 40), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.divide(x, 3.0))),
    "floored": ((3, 40), ttnn.TILE_LAYOUT, functools.partial(with_weight, function=floored, shape=(3, 40))),
    "max": ((3, 40), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.max(x, dim=-1))),
    "min": ((3, 40), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.min(x, dim=-1))),
    "sum": ((3, 40), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.sum(x, dim=-1))),
    "mean": ((3, 40), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.mean(x, dim=-1))),
    "max of columns": ((3, 40), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.max(x, dim=-2))),
    "one row": ((1, 36), ttnn.TILE_LAYOUT, product),
    "one row and relu": ((1, 36), ttnn.TILE_LAYOUT, functools.partial(product, activation="relu")),
    "some rows": ((7, 36), ttnn.TILE_LAYOUT, product),
    "sigmoid and softmax": ((3, 40), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.softmax(ttnn.sigmoid(x), dim=-1))),
    "log softmax": ((3, 40), ttnn.TILE_LAYOUT, stateless(log_softmax)),
    "layer norm": ((3, 40), ttnn.TILE_LAYOUT, functools.partial(normed, function=ttnn.layer_norm)),
    "rms norm": ((3, 40), ttnn.TILE_LAYOUT, functools.partial(normed, function=ttnn.rms_norm)),
    "norm of a sum": ((3, 40), ttnn.TILE_LAYOUT, functools.partial(normed, function=ttnn.rms_norm, adds=True)),
    "split": ((4, 64), ttnn.TILE_LAYOUT, stateless(lambda x: ttnn.add(*ttnn.split(x, 32, dim=1)))),
}  # fmt: skip
IMAGES: dict[str, Callable] = {
    "convolution": convolution,
    "convolution and relu": lambda device, dtype: convolution(device, dtype, RELU),
    "padded convolution": lambda device, dtype: convolution(device, dtype, padding=(1, 1)),
    "pool": stateless(lambda x: pool(x, 0)),
    "padded pool": stateless(lambda x: pool(x, 1)),
}  # fmt: skip
ROWS |= {name: ((1, 1, 36, 4), ttnn.ROW_MAJOR_LAYOUT, made) for name, made in IMAGES.items()}


def replays(device: Any, name: str, dtype: Any, inputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Any]:
    """The results of replays of a row, as bits, and their bindings."""
    _, layout, made = ROWS[name]
    source = ttnn.from_torch(inputs[0], dtype=dtype, layout=layout, device=device)
    run = made(device, dtype)
    trace, result = captured(device, lambda: run(source))
    found = []
    for each in inputs:
        ttnn.copy_host_to_device_tensor(on_host(each, dtype, layout), source)
        ttnn.execute_trace(device, trace, cq_id=0, blocking=True)
        found.append(bits(ttnn.to_torch(result)))
    how = bound_of(device, trace)
    ttnn.release_trace(device, trace)
    return found, how


@pytest.mark.parametrize("name", ROWS)
@given(
    mode=st.sampled_from(["fast", "auto", "exact"]),
    dtype=st.sampled_from([ttnn.bfloat16, ttnn.float32]),
    seed=st.integers(0, 1 << 30),
    hostile=st.sampled_from([0.0, 0.02, 0.5]),
)
def test_bound_replays_have_the_bits_of_unbound_ones(device, name, mode, dtype, seed, hostile) -> None:
    if dtype is ttnn.float32 and name in IMAGES:
        dtype = ttnn.bfloat16
    inputs = [values(ROWS[name][0], seed + number, hostile) for number in range(3)]
    with numerics(mode):
        ours, how = replays(device, name, dtype, inputs)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bound_replay, "MOST_VALUES", -1)
            others, nothing = replays(device, name, dtype, inputs)
    assert how is not None and nothing is None
    for one, other in zip(ours, others, strict=True):
        assert torch.equal(one, other)


BOUND_WHEN_FAST = [
    "reshape", "relu", "gelu", "add", "add a row", "multiply", "subtract", "from a number", "twice the same",
    "add and relu", "one row", "some rows", "max", "sum", "log softmax", "convolution", "convolution and relu",
    "padded convolution", "pool", "padded pool", "layer norm", "rms norm",
]  # fmt: skip


@pytest.mark.parametrize("name", BOUND_WHEN_FAST)
def test_operations_of_small_models_are_bound(device, name) -> None:
    dtype = ttnn.float32 if name == "log softmax" else ttnn.bfloat16
    with numerics("fast"):
        _, how = replays(device, name, dtype, [values(ROWS[name][0], seed) for seed in range(3)])
    assert how is not None
    assert not any(calls_compute(run) for run in how.runs)


# -- nobody sees the memory -------------------------------------------------------------------------------------------


def doubled(device: Any, first: torch.Tensor) -> tuple[Any, Any, Any]:
    source = ttnn.from_torch(first, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    trace, result = captured(device, lambda: ttnn.add(source, source))
    return source, trace, result


def test_a_result_is_not_overwritten_by_the_next_replay(device) -> None:
    source, trace, result = doubled(device, torch.ones(4, 4))
    kept = []
    for value in (1.0, 2.0, 3.0):
        ttnn.copy_host_to_device_tensor(on_host(torch.full((4, 4), value)), source)
        ttnn.execute_trace(device, trace, cq_id=0)
        kept.append((ttnn.to_torch(result), ttnn.to_torch(result, dtype=torch.float32), ttnn.from_device(result)))
    for value, (one, other, third) in zip((2.0, 4.0, 6.0), kept):
        for each in (one, other, ttnn.to_torch(third)):
            assert torch.equal(each.float(), torch.full((4, 4), value))


def test_tensors_computed_from_a_result_stay(device) -> None:
    """Also of operations that pass carriers on, such as a typecast to the same dtype."""
    source, trace, result = doubled(device, torch.ones(4, 4))
    ttnn.execute_trace(device, trace, cq_id=0)
    ttnn.execute_trace(device, trace, cq_id=0)
    made = [ttnn.typecast(result, ttnn.bfloat16), ttnn.to_memory_config(result, ttnn.L1_MEMORY_CONFIG)]
    ttnn.copy_host_to_device_tensor(on_host(torch.full((4, 4), 7.0)), source)
    ttnn.execute_trace(device, trace, cq_id=0)
    assert torch.equal(ttnn.to_torch(result).float(), torch.full((4, 4), 14.0))
    for each in made:
        assert torch.equal(ttnn.to_torch(each).float(), torch.full((4, 4), 2.0))


def test_inputs_change_in_every_way(device) -> None:
    """Replaced by the host, overwritten in place, and restored."""
    source, trace, result = doubled(device, torch.ones(4, 4))

    def check(value: float) -> None:
        ttnn.execute_trace(device, trace, cq_id=0)
        assert torch.equal(ttnn.to_torch(result).float(), torch.full((4, 4), value))

    check(2.0)
    source._storage.values[0].fill_(3.0)
    check(6.0)
    ttnn.copy_host_to_device_tensor(on_host(torch.full((4, 4), 5.0)), source)
    check(10.0)
    check(10.0)
    source._storage.values[0].fill_(1.0)
    check(2.0)


def test_changed_weights_are_prepared_again(device) -> None:
    """A convolution is bound with packed weights."""
    filters, row = (ttnn.from_torch(values(shape, 5), dtype=ttnn.bfloat16) for shape in ((8, 4, 3, 3), (1, 1, 1, 8)))
    config = ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16, config_tensors_in_dram=True)
    common = {**OF_IMAGES, "padding": (0, 0), "device": device, "conv_config": config, "dtype": ttnn.bfloat16}
    source = ttnn.from_torch(values((1, 1, 36, 4), 1), dtype=ttnn.bfloat16, device=device)
    _, [filters, row] = ttnn.conv2d(
        input_tensor=source, weight_tensor=filters, bias_tensor=row, return_weights_and_bias=True, **common
    )
    with numerics("fast"):
        trace, result = captured(
            device, lambda: ttnn.conv2d(input_tensor=source, weight_tensor=filters, bias_tensor=row, **common)
        )
        for factor in (1.0, 2.0, 2.0, -1.0):
            for each in (filters, row):
                each._storage.values[0].mul_(factor)
            ttnn.execute_trace(device, trace, cq_id=0)
            there = ttnn.conv2d(input_tensor=source, weight_tensor=filters, bias_tensor=row, **common)
            assert torch.equal(ttnn.to_torch(result), ttnn.to_torch(there))


def test_weights_computed_in_the_trace_are_not_constants(device) -> None:
    source = upload(device, torch.ones(8, 8))
    matrix = upload(device, torch.eye(8))

    with numerics("fast"):
        trace, result = captured(device, lambda: ttnn.matmul(ttnn.relu(source), ttnn.add(matrix, source)))
        for value in (1.0, 2.0, 3.0, 1.0):
            ttnn.copy_host_to_device_tensor(on_host(torch.full((8, 8), value)), source)
            ttnn.execute_trace(device, trace, cq_id=0)
            wanted = torch.full((8, 8), value) @ (torch.eye(8) + value)
            assert torch.equal(ttnn.to_torch(result).float(), wanted)


def upload(device: Any, tensor: torch.Tensor) -> Any:
    return ttnn.from_torch(tensor, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)


def test_results_of_one_trace_are_inputs_of_another(device) -> None:
    source, first, middle = doubled(device, torch.ones(4, 4))
    ttnn.execute_trace(device, first, cq_id=0)
    second, result = captured(device, lambda: ttnn.add(middle, source))
    for value in (1.0, 4.0, 2.0):
        ttnn.copy_host_to_device_tensor(on_host(torch.full((4, 4), value)), source)
        ttnn.execute_trace(device, first, cq_id=0)
        ttnn.execute_trace(device, second, cq_id=0)
        assert torch.equal(ttnn.to_torch(result).float(), torch.full((4, 4), 3 * value))


def test_two_results_that_share_a_buffer(device) -> None:
    source = upload(device, torch.ones(4, 32))

    def program() -> tuple[Any, Any]:
        made = ttnn.add(source, 1.0)
        return made, ttnn.reshape(made, (1, 4, 32))

    trace, (one, other) = captured(device, program)
    for value in (1.0, 2.0, 3.0):
        ttnn.copy_host_to_device_tensor(on_host(torch.full((4, 32), value)), source)
        ttnn.execute_trace(device, trace, cq_id=0)
        assert torch.equal(ttnn.to_torch(one).float().reshape(-1), torch.full((128,), value + 1.0))
        assert torch.equal(ttnn.to_torch(other).float().reshape(-1), torch.full((128,), value + 1.0))


# -- when it binds ----------------------------------------------------------------------------------------------------


def test_a_binding_belongs_to_one_numerics_mode(device) -> None:
    source, matrix = upload(device, values((2, 64), 1)), upload(device, values((64, 64), 2))
    trace, result = captured(device, lambda: ttnn.matmul(source, matrix))
    found = {}
    for mode in ("fast", "exact", "fast", "auto", "exact"):
        with numerics(mode):
            ttnn.execute_trace(device, trace, cq_id=0)
            there = bits(ttnn.to_torch(ttnn.matmul(source, matrix)))
        assert torch.equal(bits(ttnn.to_torch(result)), there)
        assert torch.equal(found.setdefault(mode, there), there)
        assert bound_of(device, trace).mode == mode


def test_large_traces_are_not_bound(device) -> None:
    source = upload(device, torch.ones(1500, 1500))
    trace, result = captured(device, lambda: ttnn.relu(source))
    ttnn.execute_trace(device, trace, cq_id=0)
    assert bound_of(device, trace) is None
    assert ttnn.to_torch(result).float().sum() == 1500 * 1500


def test_memory_is_freed_with_the_trace(device) -> None:
    _, trace, result = doubled(device, torch.ones(4, 4))
    ttnn.execute_trace(device, trace, cq_id=0)
    made = bound_of(device, trace)
    kept = [weakref.ref(held.values) for held in made.memory.values() if not held.constant]
    assert kept
    del made
    ttnn.release_trace(device, trace)
    gc.collect()
    assert all(each() is None for each in kept)
    assert ttnn.to_torch(result).float().sum() == 32


def test_bound_replays_allocate_no_device_memory(device) -> None:
    _kept = doubled(device, torch.ones(64, 64))
    memory = device.memory(ttnn.BufferType.DRAM)
    before = memory.allocated, memory.peak
    for _ in range(3):
        ttnn.execute_trace(device, _kept[1], cq_id=0)
    assert (memory.allocated, memory.peak) == before


def test_errors_of_a_replay_reach_the_caller_and_the_next_one_works(device) -> None:
    source = upload(device, torch.ones(4, 4))
    trace, result = captured(device, lambda: ttnn.add(source, source))
    program = device.traces[trace].programs[0]
    plan, calls = program.plan, []

    def failing(*carriers: Any) -> Any:
        calls.append(len(carriers))
        if len(calls) == 2:
            raise ValueError("no")
        return plan.compute(*carriers)

    program.plan = dataclasses.replace(plan, compute=failing)
    ttnn.execute_trace(device, trace, cq_id=0)
    with pytest.raises(ValueError, match="no"):
        ttnn.execute_trace(device, trace, cq_id=0)
    ttnn.execute_trace(device, trace, cq_id=0)
    assert ttnn.to_torch(result).float().sum() == 32


def test_threads_replay_at_the_same_time() -> None:
    """Each on its own device, and two traces on one."""
    wrong: list[Any] = []

    def work(number: int) -> None:
        device = ttnn.open_device(device_id=0)
        source = upload(device, torch.full((8, 8), float(number)))
        trace, result = captured(device, lambda: ttnn.add(source, 1.0))
        for step in range(30):
            value = float(number + step)
            ttnn.copy_host_to_device_tensor(on_host(torch.full((8, 8), value)), source)
            ttnn.execute_trace(device, trace, cq_id=0)
            if not torch.equal(ttnn.to_torch(result).float(), torch.full((8, 8), value + 1.0)):
                wrong.append((number, step))
        ttnn.close_device(device)

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
