"""Golden vectors: outputs of the chip's own kernels, bit for bit, compared with the emulator.

Each vector is a line of `golden/<set>.jsonl` (its code, inputs and outputs) with its bit patterns in
`golden/<set>.npz.xz`. They were computed by the released kernels of `ttnn` on the open-source Wormhole simulator:
`wormhole` with the operations' defaults, `compiled` with the settings of our compiled programs. The emulator
runs in exact mode. An input is stored as bits, or as a generator: `all16` (all bfloat16 patterns) or
`normal` with a seed, a shape and a checksum.
"""

from __future__ import annotations

import functools
import io
import json
import lzma
import pathlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.conformance.exchange import memory_config
from ttnn_emulator.conformance.server import L1_SMALL_SIZE
from ttnn_emulator.conformance.test_data import folder_of
from ttnn_emulator.numerics.formats.carriers import CARRIER, wide
from ttnn_emulator.numerics.mode import numerics
from ttnn_emulator.tensors.host_transfer import from_torch_tensor
from ttnn_emulator.tensors.tensor import values_of

# The kind of a vector determines its criterion. Not listed: elementwise.
MOVES = frozenset(
    (
        "from_torch to_layout reshape permute transpose concat split slice pad repeat repeat_interleave roll embedding "
        "concatenate_heads nlp_concat_heads split_query_key_value_and_split_heads gather scatter tril triu"
    ).split(" ")
)
ACCUMULATES = frozenset(
    (
        "matmul linear addmm conv1d conv2d conv_transpose2d softmax layer_norm rms_norm group_norm batch_norm sum mean "
        "std var prod cumsum cumprod scaled_dot_product_attention scaled_dot_product_attention_decode avg_pool2d "
        "adaptive_avg_pool2d global_avg_pool2d upsample mse_loss l1_loss outer rotary_embedding rotary_embedding_hf"
    ).split(" ")
)
MOVED, ELEMENTWISE, ACCUMULATED = "moved", "elementwise", "accumulated"


@dataclass(frozen=True)
class Vector:
    """One call with its inputs and the chip's outputs."""

    name: str
    op: str
    code: str
    inputs: dict[str, list]
    outputs: list[str]
    errors: list | None
    arrays: Any
    fault: str = ""  # what is wrong with the chip's result: the emulator must raise ChipFault instead

    @property
    def kind(self) -> str:
        last = self.op.rsplit(".", 1)[-1]
        return MOVED if last in MOVES else ACCUMULATED if last in ACCUMULATES else ELEMENTWISE

    def make_input(self, name: str, device: Any) -> Any:
        dtype_name, layout, memory, *recipe = self.inputs[name]
        dtype = getattr(ttnn, dtype_name)
        bits = generated(recipe, dtype) if recipe else self.arrays[f"{self.name}/{name}"]
        options: dict[str, Any] = {"layout": getattr(ttnn, f"{layout}_LAYOUT")}
        if memory != "host":
            options |= {"device": device, "memory_config": memory_config(ttnn, memory)}
        return from_torch_tensor(as_torch(bits, dtype), dtype, **options)

    def expected(self, number: int) -> torch.Tensor:
        """The chip's output as a carrier."""
        dtype = getattr(ttnn, self.outputs[number])
        values = as_torch(self.arrays[f"{self.name}/out{number}"], dtype)
        return wide(values) if dtype.name.startswith(("BFLOAT", "FLOAT")) else values.to(CARRIER[dtype])


def generated(recipe: Sequence[Any], dtype: Any) -> np.ndarray:
    """The bits of a generated input."""
    kind, *rest = recipe
    if kind == "all16":
        return np.arange(65536, dtype=np.uint16).reshape(256, 256)
    seed, shape, checksum = rest
    values = torch.from_numpy(np.random.default_rng(seed).standard_normal(shape, dtype=np.float32))
    if dtype is ttnn.float32:
        bits = values.numpy().view(np.uint32)
    else:
        bits = values.bfloat16().view(torch.int16).numpy().view(np.uint16)
    if zlib.crc32(bits.tobytes()) != checksum:
        raise ValueError(f"this version of numpy generates other numbers from the seed {seed}")
    return bits


def as_torch(bits: np.ndarray, dtype: Any) -> torch.Tensor:
    """Bit patterns as a torch tensor of their values."""
    if bits.dtype == np.uint16 and dtype.name.startswith("BFLOAT"):
        return torch.from_numpy(bits.view(np.int16).copy()).view(torch.bfloat16)
    if dtype is ttnn.float32:
        return torch.from_numpy(bits.view(np.float32).copy())
    return torch.from_numpy(bits.astype(np.int64))


@functools.cache
def _arrays(folder: pathlib.Path, name: str) -> Any:
    with lzma.open(folder / f"{name}.npz.xz") as file:
        return dict(np.load(io.BytesIO(file.read())))


def sets() -> list[str]:
    """Names of the sets of vectors."""
    return sorted(path.stem for path in folder_of("golden").glob("*.jsonl"))


def vectors(name: str) -> Iterator[Vector]:
    folder = folder_of("golden")
    arrays = _arrays(folder, name)
    for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        yield Vector(arrays=arrays, **{"errors": None, **entry})


@dataclass
class Result:
    """The distance of the emulator from the chip on one vector."""

    vector: Vector
    exact: float = 0.0  # share of elements with the same bits
    worst_ulp: float = 0.0  # largest distance in units in the last place of the output dtype
    mean_ratio: float = 0.0  # our mean distance from the chip ÷ the chip's mean distance from the float64 reference
    max_ratio: float = 0.0
    error: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def passes(self) -> bool:
        if self.vector.fault:
            return self.error.startswith("ChipFault: ")
        if self.error:
            return False
        if self.vector.kind == MOVED:
            return self.exact == 1.0
        if self.vector.kind == ELEMENTWISE:
            return self.exact >= 0.95 and self.worst_ulp <= 2
        return self.exact == 1.0 or (self.mean_ratio <= 1.25 and self.max_ratio <= 1.25)

    def __str__(self) -> str:
        if self.error:
            return f"{self.vector.name}: {self.error}"
        text = f"{self.vector.name}: {self.exact:.4%} of bits, worst {self.worst_ulp:g} ulp"
        if self.vector.kind == ACCUMULATED:
            text += f", distance mean × {self.mean_ratio:.3f}, largest × {self.max_ratio:.3f}"
        return text


def ulp_distance(ours: torch.Tensor, theirs: torch.Tensor, dtype_name: str) -> torch.Tensor:
    """Distance between carriers in units in the last place: for integers 1, for floats the spacing of neighbours.

    Block floats count in steps of the block: the smallest change that their shared exponent allows, at least that of
    their own mantissa.
    """
    if not ours.is_floating_point():
        return (ours.to(torch.int64) - theirs.to(torch.int64)).abs().double()
    drop = {"bfloat16": 16, "float32": 0, "bfloat8_b": 17, "bfloat4_b": 21}[dtype_name]

    def ordered(values: torch.Tensor) -> torch.Tensor:
        raw = values.contiguous().view(torch.int32).to(torch.int64)
        return torch.where(raw < 0, -(raw & 0x7FFFFFFF), raw) >> drop

    if dtype_name in ("bfloat8_b", "bfloat4_b"):
        bits = 7 if dtype_name == "bfloat8_b" else 3
        width = theirs.shape[-1]
        padded = torch.nn.functional.pad(theirs, (0, -width % 16)).reshape(*theirs.shape[:-1], -1, 16)
        top = padded.abs().amax(-1, keepdim=True).clamp(min=2.0**-120)
        step = torch.exp2(torch.floor(torch.log2(top)) - (bits - 1)).expand_as(padded)
        step = step.reshape(*theirs.shape[:-1], -1)[..., :width]
        return ((ours - theirs).abs() / step).nan_to_num(0.0).double()
    return (ordered(ours) - ordered(theirs)).abs().double()


def judge(vector: Vector, device: Any) -> Result:
    """Run one vector on the emulator and measure."""
    result = Result(vector, exact=1.0)
    scope: dict[str, Any] = {"ttnn": ttnn, "device": device}
    try:
        scope |= {name: vector.make_input(name, device) for name in vector.inputs}
        exec(compile(vector.code, vector.name, "exec"), scope)
        produced = scope["result"]
        outputs = list(produced) if isinstance(produced, list | tuple) else [produced]
        outputs = [output for output in outputs if isinstance(output, ttnn.Tensor)]
        for number, dtype_name in enumerate(vector.outputs):
            _measure(result, number, outputs[number], dtype_name)
    except Exception as error:
        result.error = f"{type(error).__name__}: {error}".split("\n")[0]
    return result


def _measure(result: Result, number: int, output: Any, dtype_name: str) -> None:
    ours, theirs = wide(values_of(output)[0]), result.vector.expected(number)
    if output.dtype.name.lower() != dtype_name:
        raise TypeError(f"output {number} is {output.dtype}, the chip's is {dtype_name}")
    if ours.numel() != theirs.numel():
        raise ValueError(f"output {number} has shape {list(ours.shape)}, the chip's {list(theirs.shape)}")
    ours = ours.reshape(theirs.shape)
    if ours.numel() == 0:
        return
    if ours.is_floating_point():
        same = ours.contiguous().view(torch.int32) == theirs.contiguous().view(torch.int32)
    else:
        same = ours == theirs
    result.exact = min(result.exact, same.double().mean().item())
    distance = torch.where(same, 0.0, ulp_distance(ours, theirs, dtype_name))
    result.worst_ulp = max(result.worst_ulp, distance.max().item())
    chip = (result.vector.errors or [None] * 8)[number]
    if chip is None or chip[0] is None or not ours.is_floating_point():
        return
    gap = torch.where(same, 0.0, (ours.double() - theirs.double()).abs()).nan_to_num(float("inf"))
    result.max_ratio = max(result.max_ratio, _ratio(gap.max().item(), chip[0]))
    result.mean_ratio = max(result.mean_ratio, _ratio(gap.mean().item(), chip[1]))


def _ratio(ours: float, chip: float) -> float:
    return 0.0 if ours == 0 else ours / chip if chip else float("inf")


def judge_all(names: list[str] | None = None, only: str = "") -> list[Result]:
    """Judge all vectors of the given sets, or those whose name or operation contains `only`."""
    device = ttnn.open_device(device_id=0, l1_small_size=L1_SMALL_SIZE)
    try:
        with numerics("exact"):
            return [
                judge(vector, device)
                for name in names or sets()
                for vector in vectors(name)
                if only in vector.name or only == vector.op
            ]
    finally:
        ttnn.close_device(device)
