"""Time and memory of reports on many models, and how they grow with the number of records.

    python benchmarks/tracer.py [--models 50,100,200,400] [--records N] [--folder DIR] [--json FILE]

The traces are generated from a seed and resemble real ones: the operations of vision and text models, each with the
arguments of its schema, sizes that span five decades, source lines and facts; two thirds forward, one third backward.
Every report runs in a separate process, whose peak memory is measured, with torch loaded.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from torch_ttnn.tracer import records
from torch_ttnn.tracer.records import BACKWARD, FORWARD, NOT_JSONABLE, Record, TensorFact, Trace
from ttnn_emulator.atomic_files import replacing

MODELS = "50,100,200,400"
RECORDS = 1500  # per model, forward and backward together

SIZES = (1, 3, 7, 12, 14, 16, 28, 32, 49, 56, 64, 77, 96, 112, 128, 197, 224, 256, 320, 384, 512, 768, 1024, 3072, 4096)
BLOCKS = (8, 40)  # operations per block, which a stage repeats
STAGES = (1, 6)


@dataclass(frozen=True)
class Kind:
    """Operations with similar records."""

    share: int  # relative frequency
    names: str
    inputs: str = "self"
    flops: int = 0  # per output element
    arguments: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # name -> values to draw from


WINDOW = ([1, 1], [2, 2], [3, 3], [0, 0], [14, 14], [16, 16], [1, 2])
DIM = {"dim": (0, 1, 2, -1, -2)}
CONVOLUTION: dict[str, tuple[Any, ...]] = {
    "stride": WINDOW,
    "padding": WINDOW,
    "dilation": ([1, 1], [2, 2]),
    "transposed": (False,),
    "output_padding": ([0, 0],),
    "groups": (1, 32, 64, 192),
}
MASK = {"output_mask": ([True, True, True], [True, True, False], [False, True, False])}
UNARY = """acos.default asin.default atan.default bitwise_not.default ceil.default cosh.default erf.default
erfc.default exp2.default expm1.default floor.default frac.default hardsigmoid.default hardtanh.default isinf.default
isnan.default lgamma.default log10.default log1p.default log2.default logical_not.default mish.default
reciprocal.default round.default sign.default sinh.default softplus.default square.default tan.default trunc.default"""
BINARY = """atan2.default bitwise_and.Tensor bitwise_or.Tensor eq.Tensor floor_divide.default fmod.Tensor ge.Tensor
gt.Tensor hypot.default le.Tensor logical_and.default logical_or.default lt.Tensor maximum.default minimum.default
ne.Tensor remainder.Tensor xlogy.Tensor"""
COPY = {
    "dtype": ("torch.float32", "torch.bool"),
    "device": (None, "cpu"),
    "memory_format": (None, "torch.preserve_format"),
}
FORWARD_KINDS = (
    Kind(8, "convolution.default", "input weight bias", 1152, CONVOLUTION),
    Kind(
        6,
        "_native_batch_norm_legit_no_training.default",
        "input weight bias running_mean running_var",
        4,
        {"momentum": (0.1, 0.01), "eps": (1e-5, 1e-3)},
    ),
    Kind(
        5,
        "native_layer_norm.default native_group_norm.default",
        "input weight bias",
        5,
        {"normalized_shape": ([768], [1024]), "eps": (1e-5, 1e-12)},
    ),
    Kind(7, "addmm.default baddbmm.default", "self mat1 mat2", 1536, {"beta": (1,), "alpha": (1,)}),
    Kind(4, "mm.default bmm.default", "self mat2", 1536),
    Kind(12, "add.Tensor sub.Tensor rsub.Scalar", "self other", 1, {"alpha": (1,)}),
    Kind(3, "_softmax.default _log_softmax.default", "self", 5, {"dim": (-1, 1, 3), "half_to_float": (False,)}),
    Kind(
        2,
        "_scaled_dot_product_flash_attention_for_cpu.default",
        "query key value",
        512,
        {"dropout_p": (0.0,), "is_causal": (False, True), "attn_mask": (None, NOT_JSONABLE), "scale": (None, 0.125)},
    ),
    Kind(
        2,
        "max_pool2d_with_indices.default avg_pool2d.default _adaptive_avg_pool2d.default",
        "self",
        9,
        {"kernel_size": WINDOW[1:3], "stride": WINDOW[1:2], "padding": WINDOW[:1], "ceil_mode": (False, True)},
    ),
    Kind(1, "native_dropout.default", "input", 1, {"p": (0.0, 0.1, 0.5), "train": (True, False)}),
    Kind(1, "embedding.default", "weight indices", 0, {"padding_idx": (-1, 0, 1), "sparse": (False,)}),
    Kind(2, "cat.default stack.default", "tensors[0] tensors[1] tensors[2]", 0, DIM),
    Kind(
        4,
        "slice.Tensor slice_scatter.default",
        "self",
        0,
        {**DIM, "start": (None, 0, 1, 512), "end": (9223372036854775807, 1, 77), "step": (1, 2)},
    ),
    Kind(6, "permute.default", arguments={"dims": ([0, 2, 1, 3], [0, 2, 3, 1], [1, 0])}),
    Kind(7, "transpose.int select.int unsqueeze.default squeeze.dim", arguments={"dim0": (1, 2, -1), "dim1": (0, 2)}),
    Kind(5, "t.default detach.default alias.default lift_fresh_copy.default"),
    Kind(
        14,
        "view.default _unsafe_view.default expand.default repeat.default as_strided.default",
        "self",
        0,
        {"size": tuple([a, b, c] for a in (1, 8) for b in SIZES for c in SIZES)},
    ),
    Kind(2, "_to_copy.default clone.default", "self", 1, COPY),
    Kind(
        2,
        "zeros.default ones.default full.default arange.start empty.memory_format scalar_tensor.default",
        "",
        0,
        {"size": ([1, 77], [], [1]), "dtype": (None, "torch.int64"), "device": ("cpu",), "pin_memory": (False,)},
    ),
    Kind(2, "where.self moptions_fill.Scalar index.Tensor gather.default scatter.src", "condition self other", 1, DIM),
    Kind(1, "constant_pad_nd.default reflection_pad2d.default", "self", 0, {"pad": ([0, 1], [1, 1, 1, 1])}),
    Kind(1, "upsample_bilinear2d.vec upsample_nearest2d.vec", "input", 4, {"output_size": ([7, 7], None)}),
    Kind(1, "topk.default sort.default cumsum.default tril.default triu.default", "self", 8, DIM),
    Kind(
        4,
        "mean.dim sum.dim_IntList amax.default amin.default any.dim argmax.default logsumexp.default",
        "self",
        1,
        {"dim": ([-1], [1], [2, 3], None), "keepdim": (True, False)},
    ),
    Kind(2, "max.dim min.dim prod.dim_int std.correction var.correction var_mean.correction", "self", 2, DIM),
    Kind(8, "relu.default gelu.default silu.default sigmoid.default tanh.default hardswish.default", "self", 4),
    Kind(3, "exp.default log.default sqrt.default rsqrt.default neg.default abs.default sin.default", "self", 1),
    Kind(2, UNARY, "self", 1),
    Kind(6, "mul.Tensor div.Tensor mul.Scalar div.Scalar pow.Tensor_Scalar", "self other", 1),
    Kind(2, BINARY, "self other", 1),
)
BACKWARD_KINDS = (
    Kind(10, "convolution_backward.default", "grad_output input weight", 2304, CONVOLUTION | MASK),
    Kind(
        10,
        "native_batch_norm_backward.default native_layer_norm_backward.default",
        "grad_out input weight mean rstd",
        8,
        {"train": (True,), "eps": (1e-5,), **MASK},
    ),
    Kind(
        10,
        "gelu_backward.default sigmoid_backward.default tanh_backward.default threshold_backward.default",
        "grad self",
        2,
        {"threshold": (0,), "approximate": ("none", "tanh")},
    ),
    *FORWARD_KINDS,
)


def trace(model: str, phase: str, length: int, seed: int = 0) -> Trace:
    """One generated graph of stages that repeat a block; deterministic."""
    draw = random.Random(f"{seed} {model} {phase}")
    stages = draw.randint(*STAGES)
    generated: list[Record] = []
    for stage in range(stages):
        block = [record(draw, phase) for _ in range(draw.randint(*BLOCKS))]
        end = length * (stage + 1) // stages
        while len(generated) < end:
            module = f"features.{stage}.{len(generated) // len(block)}.layer"
            generated += [replace(each, module=module) for each in block[: end - len(generated)]]
    return Trace(model, phase, 0, tuple(generated), {"python": "3.11.9", "torch": "2.13.0", "torch_ttnn": "0.2.0"})


def record(draw: random.Random, phase: str) -> Record:
    kinds = FORWARD_KINDS if phase == FORWARD else BACKWARD_KINDS
    kind = draw.choices(kinds, [each.share for each in kinds])[0]
    dtype = draw.choice(("float32", "float32", "float32", "int64"))
    inputs = tuple(TensorFact(shape(draw), dtype, name) for name in kind.inputs.split())
    output = TensorFact(shape(draw), dtype)
    arguments = {each.name.split("[")[0]: NOT_JSONABLE for each in inputs}
    arguments |= {name: draw.choice(values) for name, values in kind.arguments.items()}
    on_host = draw.random() < 0.05
    return Record(
        f"aten.{draw.choice(kind.names.split())}",
        inputs,
        (output,),
        arguments,
        source=f"/usr/lib/python3/site-packages/models/family/modeling.py:{draw.randrange(900)}: x = self.layer(x, y)",
        flops=kind.flops * output.elements,
        bytes_in=4 * sum(each.elements for each in inputs),
        bytes_out=4 * output.elements,
        lowering="host" if on_host else "device",
        reason=f"no lowering takes {dtype} at rank {len(output.shape)}" if on_host else "",
    )


def shape(draw: random.Random) -> tuple[int, ...]:
    return (1, *(draw.choice(SIZES) for _ in range(draw.choice((1, 2, 2, 3)))))


def fill(folder: pathlib.Path, models: range, length: int, seed: int = 0) -> None:
    """Write the traces of these models, a third of their records backward."""
    for number in models:
        name = f"family{number % 7}/model_{number:03d}"
        for phase, part in ((FORWARD, length - length // 3), (BACKWARD, length // 3)):
            records.write(trace(name, phase, part, seed), folder)


@dataclass(frozen=True)
class Measured:
    models: int
    records: int
    mebibytes: float  # of raw traces
    seconds: float
    cpu: float  # CPU seconds of the process
    peak: float  # MiB


LIMIT = Measured(models=200, records=200 * RECORDS, mebibytes=0, seconds=30, cpu=30, peak=1024)
REPORT = """
import resource, sys, time
from torch_ttnn.tracer.reports import generation as reports
begin, computed = time.perf_counter(), time.process_time()
reports.generate(raw=sys.argv[1], out=sys.argv[2])
print(time.perf_counter() - begin, time.process_time() - computed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def measure(folder: pathlib.Path, sizes: list[int], length: int) -> Iterator[Measured]:
    """Report on increasing numbers of models, each in a separate process."""
    raw = folder / "raw"
    for before, models in zip([0, *sizes], sizes):
        fill(raw, range(before, models), length)
        command = [sys.executable, "-c", REPORT, str(raw), str(folder / f"{models}_models")]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        seconds, cpu, peak = map(float, done.stdout.split())
        size = sum(path.stat().st_size for path in raw.iterdir())
        yield Measured(models, models * length, size / 2**20, seconds, cpu, peak / 2**10)


def exponent(measured: list[Measured]) -> float:
    """The exponent of the growth of CPU time with the number of records: 1 is linear, 2 quadratic."""
    xs, ys = [math.log(each.records) for each in measured], [math.log(each.cpu) for each in measured]
    x, y = statistics.mean(xs), statistics.mean(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


COLUMNS = ("models", "records", "raw MiB", "seconds", "CPU s", "µs per record", "µs per further record", "peak MiB")


def show(measured: list[Measured], console: Console) -> None:
    table = Table(box=box.SIMPLE, title="raw traces to all reports, each in a separate process")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for before, each in zip([None, *measured], measured):
        further = f"{(each.cpu - before.cpu) / (each.records - before.records) * 1e6:.0f}" if before else ""
        counts = (each.models, each.records, round(each.mebibytes))
        rate = f"{each.cpu / each.records * 1e6:.0f}"
        table.add_row(*map(str, counts), f"{each.seconds:.1f}", f"{each.cpu:.1f}", rate, further, f"{each.peak:.0f}")
    console.print(table)
    if len(measured) > 1:
        console.print(f"CPU time grows with the number of records to the power of {exponent(measured):.2f}")
    for each in measured:
        if each.models == LIMIT.models:
            is_met = each.seconds < LIMIT.seconds and each.peak < LIMIT.peak
            limit = f"{LIMIT.models} models in {LIMIT.seconds:.0f} s and {LIMIT.peak:.0f} MiB"
            console.print(f"limit of {limit}: {'met' if is_met else 'exceeded'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=MODELS, help=f"numbers of models, separated by commas ({MODELS})")
    parser.add_argument("--records", type=int, default=RECORDS, help=f"records per model ({RECORDS})")
    parser.add_argument("--folder", type=pathlib.Path, help="folder for traces and reports (default: temporary)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the measurements to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or pathlib.Path(temporary)
        measured = list(measure(folder, sorted(map(int, options.models.split(","))), options.records))
    show(measured, Console())
    if options.json:
        with replacing(options.json) as path:
            path.write_text(json.dumps([asdict(each) for each in measured], indent=1))


if __name__ == "__main__":
    main()
