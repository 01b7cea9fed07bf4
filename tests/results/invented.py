"""Generated results for tests of pages: any number of rows with all fields, equal for equal seeds."""

from __future__ import annotations

import random

from torch_ttnn.results.record import (
    CONVERTED,
    EVAL,
    FAILS,
    HOST,
    ON_DEVICE,
    REMOVED,
    TRAIN,
    WITH_HOST_OPS,
    Fusion,
    Gradient,
    HostOp,
    Move,
    Predicted,
    Row,
    Task,
    Variation,
)

OPS = (
    "convolution.default", "addmm.default", "mm.default", "relu.default", "add.Tensor", "mul.Tensor", "view.default",
    "permute.default", "native_layer_norm.default", "gelu.default", "softmax.int", "cat.default", "slice.Tensor",
    "index.Tensor", "sort.default", "nonzero.default", "where.self", "mean.dim", "max_pool2d_with_indices.default",
    "embedding.default", "bmm.default", "silu.default", "sigmoid.default", "expand.default", "clone.default",
)  # fmt: skip
NAMES = ("resnet18", "mnist-cnn", "densenet121", "vit-base", "gpt2", "bert-large-qa", "resnet50", "t5-small")
FAMILIES = ("resnet", "vit", "gpt", "bert", "densenet", "unet")
SOURCES = ("torchvision", "timm", "transformers", "ours")
REASONS = ("values decide the shape", "sorting is not lowered for int64")
LINE = "timm/models/thing.py:{}: x = x.sort(dim)[0]"
VERSIONS = {"torch": "2.13.0", "torch_ttnn": "0.3.0"}


def results(models: int = 12, *, seed: int = 0, train_every: int = 4, variations: int = 8) -> list[Row]:
    """Rows of this many models; every fourth is trained, some have host operations, some fail."""
    draw = random.Random(seed)
    rows = []
    for number in range(models):
        name = NAMES[number] if number < len(NAMES) else f"model_{number:03}"
        rows.append(row_of(name, EVAL, draw, variations))
        if train_every and number % train_every == 0:
            rows.append(row_of(name, TRAIN, draw, variations))
    return rows


def row_of(model: str, mode: str, draw: random.Random, variations: int = 8) -> Row:
    """One row, with everything filled in."""
    status = draw.choices((ON_DEVICE, WITH_HOST_OPS, FAILS), (8, 2, 1))[0]
    about = {
        "model": model, "mode": mode, "family": draw.choice(FAMILIES), "source": draw.choice(SOURCES),
        "task": "image classification", "batch": draw.choice((1, 1, 8)), "inputs": "float32[1, 3, 224, 224]",
        "parameters": draw.randrange(10**4, 10**8), "device": "emulator:n150", "versions": VERSIONS,
        "reduced": "2 layers in place of 12." if draw.random() < 0.3 else "", "host_peak": draw.randrange(2**28, 2**33),
    }  # fmt: skip
    generated = tuple(_variation(draw, number, status) for number in range(variations))
    if status == FAILS:
        return Row(**about, status=FAILS, reason="OutOfMemory: no room for 3.0 GiB", details="Traceback:\n  …")
    host = tuple(
        HostOp(each.op, each.reason, LINE.format(number), each.count)
        for number, each in enumerate(generated)
        if each.outcome == HOST
    )
    pcc = 1 - 10 ** -draw.uniform(1.8, 5.5)
    seconds = 10 ** draw.uniform(-3, 1)
    crossings = draw.randrange(1, 6)
    return Row(
        **about,
        status=WITH_HOST_OPS if host else ON_DEVICE,
        programs=1,
        ops_before=sum(each.count for each in generated),
        ops_before_unique=len({each.op for each in generated}),
        ops_remaining=sum(each.count for each in host),
        ops_remaining_unique=len({each.op for each in host}),
        device_ops=sum(each.count for each in generated if each.outcome == CONVERTED),
        uploads=crossings + len(host),
        downloads=1 + len(host),
        crossings_within=2 * len(host),
        conversions=draw.randrange(9),
        host_ops=host,
        moves=(Move("from_torch", 602112, "comes from input 0 of the graph"), Move("to_layout", 4096, "for conv2d", 3)),
        fusions=(Fusion("linear_activation", draw.randrange(1, 30)), Fusion("attention", 12)),
        variations=generated,
        first_seconds=10 * seconds,
        original_seconds=seconds,
        compiled_seconds=seconds * 10 ** draw.uniform(-0.4, 0.6),
        calls=5,
        pcc=pcc,
        relative_error=(1 - pcc) ** 0.5,
        tasks=(Task("MNIST test set", "accuracy, %", 10000, 99.12, 99.1),) if model == "mnist-cnn" else (),
        gradient_pcc=pcc if mode == TRAIN else None,
        gradients=tuple(Gradient(f"layer.{k}.weight", pcc + k * (1 - pcc) / 10, 0.01) for k in range(10))
        if mode == TRAIN
        else (),
        losses=(2.31, 2.2, 2.11) if mode == TRAIN else (),
        original_losses=(2.3, 2.2, 2.1) if mode == TRAIN else (),
        dram_peak=draw.randrange(2**20, 2**32),
        l1_peak=draw.randrange(2**17, 2**20),
        weights=draw.randrange(2**20),
        predicted=_predicted(random.Random(f"{model} {mode}")),
    )


def _predicted(draw: random.Random) -> Predicted | None:
    """Nine of ten rows have one."""
    if draw.random() < 0.1:
        return None
    kernels = 10 ** draw.uniform(-4, 0)
    return Predicted(
        "n150", 100, kernels, 6.6e-5, 2e-4, kernels + 5e-3, kernels + 3e-4, kernels + 7e-5,
        error=0.2, uncalibrated=0.05, sources="0123456789ab",
    )  # fmt: skip


def _variation(draw: random.Random, number: int, status: str) -> Variation:
    op, size = f"aten.{draw.choice(OPS)}", draw.choice((7, 14, 28, 56, 112, 224))
    outcome = draw.choices((CONVERTED, REMOVED), (3, 1))[0]
    if status == WITH_HOST_OPS and number < 2:
        op, outcome = f"aten.{draw.choice(('sort.default', 'nonzero.default', 'index.Tensor'))}", HOST
    return Variation(
        op,
        f"float32[1, {draw.randrange(1, 2048)}, {size}, {size}], float32[{draw.randrange(1, 2048)}]",
        f"stride=[{draw.randrange(1, 4)}, {draw.randrange(1, 4)}], dim={number}",
        outcome,
        draw.randrange(1, 60),
        draw.choice(REASONS) if outcome == HOST else "",
    )
