"""Functions that prepare weights and biases for the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ttnn_emulator.conformance.case import (
    DEVICE,
    DTYPES,
    FLOATS,
    LAYOUTS,
    Case,
    E,
    G,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
    product,
    width_sharded,
)

from ._conv_words import (
    KERNELS,
    SCHEMES,
    SLICINGS,
    Image,
    compute,
    named,
    settings,
    slicing,
)

WEIGHTS = ("prepare_conv_weights", "prepare_conv_transpose2d_weights")
BIASES = ("prepare_conv_bias", "prepare_conv_transpose2d_bias")
ALL = WEIGHTS + BIASES
PLAIN = Image()


def prepare(
    op: str, image: Image = PLAIN, *, tensor: Case | None = None, slices: Case | None = None, **more: Any
) -> Case:
    """One call; arguments may be replaced by name; None leaves an argument out."""
    of_weights = op.endswith("weights")
    arguments: dict[str, Any] = {
        ("weight_tensor" if of_weights else "bias_tensor"): tensor
        or (image.weight(op) if of_weights else image.bias()),
        "input_memory_config": M(image.mem),
        "input_layout": E(f"{image.layout}_LAYOUT"),
        "in_channels": image.in_channels,
        "out_channels": image.out_channels,
        "batch_size": image.batch,
        "input_height": image.size[0],
        "input_width": image.size[1],
        "kernel_size": list(image.kernel),
        "stride": [1, 1],
        "padding": [0, 0],
        "dilation": [1, 1],
        "groups": image.groups,
        "device": DEVICE,
        "input_dtype": E(image.dtype),
        "conv_config": settings(),
    }
    if of_weights:
        taps = "IOHW" if "transpose" in op else "OIHW"
        arguments |= {"weights_format": taps, "has_bias": False}
    if slices is not None:
        arguments["dram_slice_config" if "transpose" in op else "slice_config"] = slices
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in more.items()}
    return call(f"ttnn.{op}", **{name: value for name, value in (arguments | given).items() if value is not None})


def cases() -> Iterator[Case]:
    for family in (windows, places, channels, dtypes, tensors, configs, slices, invalid_arguments):
        yield from family()


def windows() -> Iterator[Case]:
    for op, kernel, stride, padding in product(
        ALL, ((1, 1), (3, 3), (2, 2), (5, 3)), ((1, 1), (2, 2)), ((0, 0), (1, 1), (0, 1, 2, 0))
    ):
        yield prepare(op, replace(PLAIN, kernel=kernel), stride=stride, padding=padding)
    for op, dilation in product(ALL, ((2, 2), (1, 3), (9, 9), (0, 0))):
        yield prepare(op, dilation=dilation)
    for op, batch, size in product(ALL, (1, 4), ((1, 64), (7, 9), (56, 56), (2, 2))):
        yield prepare(op, replace(PLAIN, batch=batch, size=size), padding=(1, 1))


def places() -> Iterator[Case]:
    spots = (
        "DRAM",
        "L1",
        height_sharded([32, 32], 2),
        height_sharded([64, 16], 1),
        width_sharded([64, 16], 2),
        width_sharded([64, 8], 4),
        block_sharded([32, 16], (2, 2)),
        block_sharded([32, 16], (2, 2), orient="COL_MAJOR"),
    )
    for op, layout, spot in product(ALL, LAYOUTS, spots):
        image = replace(PLAIN, in_channels=32, layout=layout, mem=spot)
        yield prepare(op, image)
        yield prepare(op, image, conv_config=settings(reshard_if_not_optimal=True, shard_layout=SCHEMES[0]))


def channels() -> Iterator[Case]:
    for op, (inner, outer), mem in product(ALL, ((1, 1), (3, 64), (33, 65), (256, 512), (1024, 40)), ("DRAM", "L1")):
        yield prepare(op, replace(PLAIN, in_channels=inner, out_channels=outer, mem=mem))
    for op, groups, mem in product(ALL, (0, 2, 4, 16), ("DRAM", "L1")):
        image = replace(PLAIN, groups=groups, out_channels=16 if groups == 16 else 32, mem=mem)
        yield prepare(op, image)
        yield prepare(op, replace(image, size=(1, 64), kernel=(1, 3)))


def dtypes() -> Iterator[Case]:
    for op, dtype in product(ALL, DTYPES):
        yield prepare(op, replace(PLAIN, dtype=dtype, layout="TILE"))
        yield prepare(op, replace(PLAIN, weight_dtype=dtype))
        yield prepare(op, output_dtype=E(dtype))
        yield prepare(op, conv_config=settings(weights_dtype=E(dtype)))
        yield prepare(op, replace(PLAIN, mem="L1"), conv_config=settings(weights_dtype=E(dtype)))
    for op, kernel, dtype in product(ALL, KERNELS, FLOATS[:2]):
        yield prepare(op, replace(PLAIN, dtype=dtype), compute_config=compute(**kernel))


def tensors() -> Iterator[Case]:
    shapes = ((32, 16, 3, 3), (16, 32, 3, 3), (32, 16, 9), (32, 16), (1, 32, 16, 3, 3), (31, 16, 3, 3), (32, 8, 3, 3))
    for op, shape in product(WEIGHTS, shapes):
        yield prepare(op, tensor=T(shape, layout="ROW_MAJOR", host=True))
        yield prepare(op, tensor=T(shape, host=True))
        yield prepare(op, tensor=T(shape, layout="ROW_MAJOR"))
    for op, shape in product(BIASES, ((1, 1, 1, 32), (1, 1, 1, 31), (1, 1, 32, 32), (32,), (1, 32), (1, 1, 1, 1, 32))):
        yield prepare(op, tensor=T(shape, layout="ROW_MAJOR", host=True))
        yield prepare(op, tensor=T(shape, host=True))
        yield prepare(op, tensor=T(shape, layout="ROW_MAJOR"))


def configs() -> Iterator[Case]:
    fields: tuple[dict[str, Any], ...] = (
        {},
        {"act_block_h_override": 32},
        {"act_block_w_div": 2},
        {"full_inner_dim": True},
        {"enable_kernel_stride_folding": True},
        {"enable_activation_reuse": True, "act_block_h_override": 64},
        {"transpose_shards": True},
        {"output_layout": E("ROW_MAJOR_LAYOUT")},
        {"override_output_sharding_config": True, "core_grid": G([0, 0, 3, 7])},
    )
    for op, scheme, more, mem in product(ALL, (None, *SCHEMES), fields, ("DRAM", "L1")):
        image = replace(PLAIN, size=(32, 32), in_channels=64, out_channels=96, mem=mem)
        yield prepare(op, image, conv_config=settings(shard_layout=scheme, **more))
    for op, mem in product(ALL, ("DRAM", "L1")):
        yield prepare(op, replace(PLAIN, mem=mem), conv_config=None)
        yield prepare(op, replace(PLAIN, kernel=(2, 2), mem=mem), stride=(2, 2))
        yield prepare(op, replace(PLAIN, kernel=(4, 4), in_channels=3, mem=mem), stride=(4, 4), padding=(2, 2))


def slices() -> Iterator[Case]:
    for op, kind, count in product(WEIGHTS, SLICINGS, (None, 1, 2, 100)):
        for size in ((64, 64), (7, 9)):
            yield prepare(op, replace(PLAIN, size=size), slices=slicing(kind, count))
    for op, kind in product(BIASES, SLICINGS):
        yield prepare(op, slices=slicing(kind, 2))
    for op, inner in product(ALL, (32, 256)):
        yield prepare(op, replace(PLAIN, size=(512, 512), in_channels=inner), padding=(1, 1))


def invalid_arguments() -> Iterator[Case]:
    for op, dtype, layout in product(ALL, DTYPES, LAYOUTS):
        if layout == "TILE" or not dtype.endswith("_b"):
            shape = (32, 16, 3, 3) if op.endswith("weights") else (1, 1, 1, 32)
            yield prepare(op, tensor=T(shape, dtype, layout))
            yield prepare(op, tensor=T(shape, dtype, layout, host=True), conv_config=settings(act_block_h_override=48))
    for op, name in product(ALL, ("conv_config", "compute_config", "output_dtype", "in_channels", "kernel_size")):
        for value in (1.5, "none", DEVICE):
            yield prepare(op, **named(name, value))
    for op in ALL:
        for name in ("in_channels", "out_channels", "batch_size", "input_height", "input_width", "groups"):
            for value in (-1, 0, "many", *((7,) if name != "groups" else ())):
                yield prepare(op, **named(name, value))
        for name in ("kernel_size", "stride", "padding", "dilation"):
            for wrong in ([1], [-1, 1], [0, 0], "many", 2):
                yield prepare(op, **named(name, wrong))
        for name in ("input_memory_config", "input_layout", "device", "input_dtype", "has_bias", "weights_format"):
            yield prepare(op, **named(name, "none"))
        yield prepare(op, colour=1)
        yield call(f"ttnn.{op}")
    for op, order in product(WEIGHTS, ("OIHW", "IOHW", "HWIO", "")):
        yield prepare(op, weights_format=order)
    for op, flag in product(WEIGHTS, (True, False)):
        yield prepare(op, has_bias=flag, groups=2)
        yield prepare(op, has_bias=flag, mirror_kernel=flag)
        yield prepare(op, has_bias=flag, output_padding=(1, 1), stride=(2, 2))
