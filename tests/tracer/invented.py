"""Generated summaries of any size for tests of pages, without tracing."""

from __future__ import annotations

import random
from collections import Counter

from torch_ttnn.tracer.reports.summary import PHASES, ModelPhase, ModelSummary, OpSummary, Summary
from torch_ttnn.tracer.reports.verdicts import location

NAMES = "convolution relu add addmm mm bmm view permute native_layer_norm _softmax cat slice mul gelu max_pool2d mean"
REASONS = ("rank 5 is not supported", "int64 values stay on the host", "the shape depends on values")
ARGUMENTS = {"stride": ("[1, 1]", "[2, 2]"), "groups": tuple(map(str, range(40))), "alpha": ("1",)}


def summary(ops: int = 12, models: int = 6, phases: tuple[str, ...] = tuple(PHASES), seed: int = 0) -> Summary:
    """Some models that each use some of the operations."""
    rng = random.Random(seed)
    generated = Summary(bad=[("fw_broken_0.json", "not JSON: Expecting value")])
    generated.versions["torch"] = Counter({"2.13.0": models})
    for number in range(models):
        name = f"model {number}"
        model = generated.models[name] = ModelSummary(name)
        for phase in phases:
            chosen = rng.sample(range(ops), k=max(1, min(ops, 1 + int(ops * rng.random() ** 1.5))))
            for op in chosen:
                _use(generated.phases[phase], model.phases[phase], name, op, rng)
            model.phases[phase].graphs = rng.randint(1, 3)
    return generated


def op_name(number: int) -> str:
    names = NAMES.split()
    variant = number // len(names)
    return f"aten.{names[number % len(names)]}.{f'variant{variant}' if variant else 'default'}"


def _use(ops: dict[str, OpSummary], model: ModelPhase, name: str, number: int, rng: random.Random) -> None:
    """Add calls of an operation at different sizes to a summary."""
    op_type = op_name(number)
    op = ops.setdefault(op_type, OpSummary(op_type, source=f"model.py:{number + 1}: x = op(x)"))
    status = ("device", "device", "decomposed", "host", "")[number % 5]
    model.distinct_ops += 1
    for side in rng.sample((7, 14, 28, 56, 112), k=rng.randint(1, 3)):
        calls = 1 + int(70 * rng.random() ** 4 / (1 + number % 16))
        size, flops = side * side * rng.choice((16, 64, 256)), rng.randint(0, 10**9) * (number % 3)
        op.models[name] += calls
        op.input_sizes[size] += calls
        op.output_sizes[size // 2] += calls
        op.shapes[f"1×64×{side}×{side}"] += calls
        op.dtypes[rng.choice(("float32", "float32, int64", "bfloat16"))] += calls
        op.lowering[status, rng.choice(REASONS) if status == "host" else ""] += calls
        for argument, values in ARGUMENTS.items():
            op.arguments.setdefault(argument, Counter())[rng.choice(values)] += calls
        op.arguments.setdefault("input", Counter())["not_jsonable"] += calls
        model.ops += calls
        model.lowering[location(status)] += calls
        for counted in (op, model):
            counted.flops += flops
            counted.bytes_in += 4 * size * calls
            counted.bytes_out += 2 * size * calls
