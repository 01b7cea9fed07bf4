"""Convolutions: conv1d, conv2d, conv_transpose2d, and preparation of weights and biases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ttnn_emulator.conformance.case import (
    DEVICE,
    DTYPES,
    FLOATS,
    LAYOUTS,
    C,
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

from . import _prepared_weights
from ._conv_words import (
    ACTIVATIONS,
    AUTOMATIC,
    KERNELS,
    SCHEMES,
    SLICINGS,
    Image,
    compute,
    named,
    settings,
    slicing,
)


def cases() -> Iterator[Case]:
    for family in (
        windows,
        channels,
        grouped,
        dtypes,
        inputs,
        sharded_inputs,
        weights,
        configs,
        memory,
        kernels,
        slices,
        returned_sizes_and_weights,
        invalid_arguments,
        one_dimension,
        transposed,
        output_sizes,
    ):
        yield from family()
    yield from _prepared_weights.cases()


PLAIN = Image()
OPS = ("conv2d", "conv_transpose2d")


# -- geometry ---------------------------------------------------------------------------------------------------------


def windows() -> Iterator[Case]:
    for op, size, kernel in product(OPS, ((8, 8), (7, 9), (16, 5)), ((1, 1), (2, 2), (3, 3), (5, 3), (1, 7))):
        for stride, padding in (((1, 1), (0, 0)), ((2, 2), (1, 1)), ((1, 2), (0, 1, 2, 0))):
            yield replace(PLAIN, size=size, kernel=kernel).call(op, stride=stride, padding=padding)
    for op, dilation in product(OPS, ((2, 2), (1, 3), (3, 1), (5, 5), (0, 0))):
        yield PLAIN.call(op, dilation=dilation)
        yield PLAIN.call(op, dilation=dilation, padding=(2, 2))
    for op, stride in product(OPS, ((0, 1), (3, 3), (4, 2), (9, 9), (-1, 1), (1,), (1, 1, 1))):
        yield PLAIN.call(op, stride=stride)
    for op, padding in product(OPS, ((1,), (1, 1, 1), (0, 0, 0, 0), (3, 2, 1, 0), (-1, 0), (8, 8), (1, 1, 1, 1, 1))):
        yield PLAIN.call(op, padding=padding)
    for op, kernel in product(OPS, ((9, 9), (8, 8), (0, 0), (3,), (3, 3, 3), (16, 1))):
        yield replace(PLAIN, kernel=kernel).call(op)
        yield replace(PLAIN, kernel=kernel).call(op, padding=(1, 1))
    for op, size in product(OPS, ((1, 1), (1, 64), (56, 56), (3, 200), (200, 3), (224, 224))):
        yield replace(PLAIN, size=size).call(op, padding=(1, 1))
    for op, batch in product(OPS, (0, 2, 3, 16)):
        yield replace(PLAIN, batch=batch).call(op, padding=(1, 1))
    for size, kernel, stride in (
        ((224, 224), (16, 16), (16, 16)),
        ((32, 32), (4, 4), (4, 4)),
        ((30, 30), (4, 4), (4, 4)),
    ):
        for layout, folding in product(LAYOUTS, (None, True, False)):
            image = replace(PLAIN, size=size, kernel=kernel, in_channels=3, layout=layout)
            yield image.call(stride=stride, conv_config=settings(enable_kernel_stride_folding=folding))
    for stride, kernel, padding in (((2, 2), (3, 3), (1, 1)), ((2, 2), (2, 2), (1, 1)), ((3, 3), (2, 2), (0, 0))):
        image = replace(PLAIN, kernel=kernel)
        yield image.call(stride=stride, padding=padding, conv_config=settings(enable_kernel_stride_folding=True))


def channels() -> Iterator[Case]:
    for op, (inner, outer) in product(OPS, ((1, 1), (3, 64), (5, 7), (33, 65), (256, 512), (1000, 10), (2048, 64))):
        for kernel in ((3, 3), (1, 1)):
            yield replace(PLAIN, in_channels=inner, out_channels=outer, kernel=kernel).call(op)
    for inner, outer, side in ((64, 64, 56), (256, 256, 14), (512, 2048, 7), (3, 64, 224), (128, 128, 128)):
        image = replace(PLAIN, in_channels=inner, out_channels=outer, size=(side, side))
        for scheme in (None, *SCHEMES):
            yield image.call(padding=(1, 1), conv_config=settings(shard_layout=scheme))
        yield image.call(padding=(1, 1), bias=True)
        yield replace(image, mem="L1").call(padding=(1, 1))


def grouped() -> Iterator[Case]:
    # With groups that do not divide the input channels, a transposed convolution of the library overruns its memory.
    for op, groups in (*product(("conv2d",), (0, 2, 4, 32, 5, 64)), *product(("conv_transpose2d",), (0, 2, 4, 16))):
        yield PLAIN.call(op, groups=groups)
        yield replace(PLAIN, groups=groups).call(op)
        yield replace(PLAIN, groups=groups).call(op, bias=True, padding=(1, 1))
    for width, kernel, mem in product((32, 24, 64), ((3, 3), (1, 3)), ("DRAM", "L1")):
        image = replace(PLAIN, in_channels=width, out_channels=width, groups=width, kernel=kernel, mem=mem)
        yield image.call()
        yield replace(image, size=(1, 64)).call(padding=(0, 1))
    double = replace(PLAIN, in_channels=32, out_channels=64, groups=32)
    yield double.call()
    yield double.call(bias=True)


# -- tensors ----------------------------------------------------------------------------------------------------------


def dtypes() -> Iterator[Case]:
    for op, dtype in product(OPS, DTYPES):
        layout = "TILE" if dtype.endswith("_b") else "ROW_MAJOR"
        yield replace(PLAIN, dtype=dtype, layout=layout).call(op)
        yield replace(PLAIN, dtype=dtype, layout="TILE").call(op, bias=True)
        yield PLAIN.call(op, dtype=E(dtype))
        yield PLAIN.call(op, conv_config=settings(weights_dtype=E(dtype)))
        yield replace(PLAIN, weight_dtype=dtype).call(op)
        yield replace(PLAIN, weight_dtype=dtype).call(op, bias=True)
    for source, weight, out in product(FLOATS[:3], FLOATS[:3], FLOATS):
        layout = "TILE" if source.endswith("_b") else "ROW_MAJOR"
        image = replace(PLAIN, dtype=source, layout=layout, weight_dtype="float32")
        yield image.call(dtype=E(out), conv_config=settings(weights_dtype=E(weight)))


def inputs() -> Iterator[Case]:
    shapes = ((1, 8, 8, 16), (64, 16), (1, 64, 16), (1, 1, 1, 64, 16), (1, 1, 16, 64), (1, 1, 65, 16), (1, 1, 64, 15))
    for op, shape in product(OPS, shapes):
        for mem in ("DRAM", "L1"):
            yield PLAIN.call(op, source=T(shape, layout="ROW_MAJOR", mem=mem))
    for op, layout, mem in product(OPS, LAYOUTS, ("DRAM", "L1")):
        for size, width in (((8, 8), 16), ((7, 9), 5), ((16, 16), 64)):
            image = replace(PLAIN, size=size, in_channels=width, layout=layout, mem=mem)
            yield image.call(op)
            yield image.call(op, conv_config=settings(shard_layout=SCHEMES[0]))
    for op, layout in product(OPS, LAYOUTS):
        yield PLAIN.call(op, source=T((1, 1, 64, 16), layout=layout, host=True))


def sharded_inputs() -> Iterator[Case]:
    places = (
        height_sharded([32, 32], 2),
        height_sharded([8, 32], 8),
        height_sharded([64, 32], 1, orient="COL_MAJOR"),
        width_sharded([64, 32], 1),
        width_sharded([64, 16], 2),
        width_sharded([64, 8], 4),
        block_sharded([32, 32], (1, 2)),
        block_sharded([32, 16], (2, 2)),
        block_sharded([32, 16], (2, 2), orient="COL_MAJOR"),
    )
    for op, layout, place in product(OPS, LAYOUTS, places):
        image = replace(PLAIN, in_channels=32, layout=layout, mem=place)
        yield image.call(op)
        yield image.call(op, padding=(1, 1), bias=True)
        yield image.call(op, conv_config=settings(reshard_if_not_optimal=True))
        yield replace(image, kernel=(1, 1)).call(op)
    for place, scheme in product((places[0], places[4], places[7]), SCHEMES):
        image = replace(PLAIN, in_channels=32, mem=place)
        yield image.call(conv_config=settings(shard_layout=scheme))
        yield image.call(conv_config=settings(shard_layout=scheme, reshard_if_not_optimal=True))
        yield image.call(memory_config=M("DRAM"))
    wide = block_sharded([32, 64], (4, 8))
    for kernel, outer in product(((3, 3), (1, 1)), (64, 256, 320)):
        image = replace(PLAIN, in_channels=256, out_channels=outer, size=(16, 16), kernel=kernel, mem=wide)
        yield image.call(padding=(kernel[0] // 2,) * 2)


def weights() -> Iterator[Case]:
    shapes = ((32, 16, 3, 3), (16, 32, 3, 3), (32, 16, 5, 5), (32, 16, 9), (32, 16), (1, 32, 16, 3, 3), (31, 16, 3, 3))
    for op, shape in product(OPS, shapes):
        yield PLAIN.call(op, weight=T(shape, layout="ROW_MAJOR", host=True))
        yield PLAIN.call(op, weight=T(shape, layout="ROW_MAJOR"))
        yield PLAIN.call(op, weight=T(shape, layout="TILE", host=True))
    prepared = ((1, 1, 144, 32), (1, 1, 160, 32), (1, 1, 144, 64), (1, 1, 144, 31), (1, 2, 144, 32), (144, 32))
    for op, shape in product(OPS, prepared):
        yield PLAIN.call(op, weight=T(shape))
        yield PLAIN.call(op, weight=T(shape, "bfloat8_b"), conv_config=settings())
        yield PLAIN.call(op, weight=T(shape, "bfloat8_b"))
        yield replace(PLAIN, mem="L1").call(op, weight=T(shape))
    biases = ((1, 1, 1, 32), (1, 1, 1, 31), (1, 1, 32, 32), (32,), (1, 32), (1, 1, 1, 64), (1, 1, 1, 1, 32))
    for op, shape in product(OPS, biases):
        yield PLAIN.call(op, bias_tensor=T(shape, layout="ROW_MAJOR", host=True))
        yield PLAIN.call(op, bias_tensor=T(shape, layout="TILE", host=True))
        yield PLAIN.call(op, bias_tensor=T(shape))
        yield PLAIN.call(op, weight=T((1, 1, 144, 32)), bias_tensor=T(shape))
    for op, dtype in product(OPS, DTYPES):
        yield PLAIN.call(op, bias_tensor=T((1, 1, 1, 32), dtype, "ROW_MAJOR", host=True))


# -- settings ---------------------------------------------------------------------------------------------------------


def configs() -> Iterator[Case]:
    images = (
        replace(PLAIN, size=(32, 32)),
        replace(PLAIN, size=(16, 16), in_channels=64, out_channels=128, mem="L1"),
        replace(PLAIN, size=(16, 16), in_channels=320, out_channels=320, kernel=(1, 1)),
    )
    fields: tuple[dict[str, Any], ...] = (
        {"deallocate_activation": True},
        {"reallocate_halo_output": False},
        {"config_tensors_in_dram": True},
        {"act_block_h_override": 32},
        {"act_block_h_override": 64},
        {"act_block_h_override": 48},
        {"act_block_w_div": 2},
        {"reshard_if_not_optimal": True},
        {"transpose_shards": True},
        {"output_layout": E("ROW_MAJOR_LAYOUT")},
        {"enable_act_double_buffer": True},
        {"enable_weights_double_buffer": True},
        {"full_inner_dim": True},
        {"enable_kernel_stride_folding": True},
        {"enable_activation_reuse": True},
        {"enable_activation_reuse": True, "act_block_h_override": 64},
        {"force_split_reader": True},
        {"force_split_reader": False},
        {"override_sharding_config": True},
        {"override_sharding_config": True, "core_grid": G([0, 0, 3, 3])},
        {"override_output_sharding_config": True},
        {"override_output_sharding_config": True, "core_grid": G([0, 0, 3, 7])},
        {"padding_mode": E("PaddingMode.Replicate")},
    )
    for image, scheme, more in product(images, (None, *SCHEMES), fields):
        yield image.call(padding=(1, 1), conv_config=settings(shard_layout=scheme, **more))
    for width, parts, kernel in product((64, 128, 256, 2560), (1, 2, 3, 4, 9), ((3, 3), (2, 2), (1, 3))):
        image = replace(PLAIN, in_channels=width, kernel=kernel, mem="L1")
        yield image.call(conv_config=settings(shard_layout=SCHEMES[1], act_block_w_div=parts))
    for scheme, more in product((None, *SCHEMES), fields[:16]):
        image = replace(PLAIN, size=(16, 16), in_channels=32, mem="L1")
        yield image.call("conv_transpose2d", conv_config=settings(shard_layout=scheme, **more))
    for op, activation, bias in product(OPS, ACTIVATIONS, (True, False)):
        yield PLAIN.call(op, conv_config=settings(activation=activation), bias=bias)
    for op in OPS:
        yield PLAIN.call(op, conv_config=settings(shard_layout=E("TensorMemoryLayout.INTERLEAVED")))
        yield PLAIN.call(op, conv_config=settings(output_layout=E("ROW_MAJOR_LAYOUT")), dtype=E("bfloat8_b"))
        yield PLAIN.call(op, conv_config=settings(core_grid=G([0, 0, 3, 3]), shard_layout=SCHEMES[2]))
        yield PLAIN.call(op, conv_config=settings(activation="relu"))
        yield PLAIN.call(op, conv_config=settings(act_block_h_override=-32))


def memory() -> Iterator[Case]:
    for op, source in product(OPS, ("DRAM", "L1")):
        image = replace(PLAIN, in_channels=32, size=(8, 8), mem=source)
        for place in (
            "DRAM",
            "L1",
            height_sharded([32, 32], 2),
            width_sharded([64, 32], 1),
            block_sharded([32, 32], (1, 2)),
        ):
            yield image.call(op, padding=(1, 1), memory_config=M(place))
            yield replace(image, kernel=(1, 1)).call(op, memory_config=M(place))
        yield image.call(op, memory_config=M(height_sharded([16, 16], 4)))


def kernels() -> Iterator[Case]:
    for op, kernel in product(OPS, KERNELS):
        yield PLAIN.call(op, compute_config=compute(**kernel))
        yield replace(PLAIN, mem="L1").call(op, compute_config=compute(**kernel), bias=True)
        yield replace(PLAIN, dtype="float32", weight_dtype="float32").call(op, compute_config=compute(**kernel))
    for op in OPS:
        yield PLAIN.call(op, compute_config=None)
        yield PLAIN.call(op, compute_config=E("MathFidelity.LoFi"))


def slices() -> Iterator[Case]:
    images = (
        replace(PLAIN, size=(64, 64)),
        replace(PLAIN, size=(7, 9)),
        replace(PLAIN, size=(32, 100), in_channels=64, layout="TILE"),
        replace(PLAIN, size=(16, 16), mem="L1"),
    )
    for op, image, kind in product(OPS, images, SLICINGS):
        for count in (None, 0, 1, 2, 3, 40):
            yield image.call(op, padding=(1, 1), slicing=slicing(kind, count))
    for op, scheme, kind in product(OPS, SCHEMES, SLICINGS):
        config = settings(shard_layout=scheme, output_layout=E("ROW_MAJOR_LAYOUT"))
        yield images[0].call(op, conv_config=config, slicing=slicing(kind, 2))
    for op, kernel in product(OPS, ((1, 1), (2, 2))):
        image = replace(PLAIN, kernel=kernel, size=(32, 32))
        yield image.call(op, stride=kernel, slicing=slicing(SLICINGS[0], 2), bias=True)
    large = replace(PLAIN, size=(512, 512), in_channels=32)
    for op in OPS:
        yield large.call(op, padding=(1, 1))
        yield replace(large, in_channels=256, out_channels=256).call(op, padding=(1, 1), conv_config=AUTOMATIC)


def returned_sizes_and_weights() -> Iterator[Case]:
    for op, size, both in product(OPS, (True, False), (True, False)):
        flags = {"return_output_dim": size, "return_weights_and_bias": both}
        for mem, bias in product(("DRAM", "L1"), (True, False)):
            yield replace(PLAIN, mem=mem).call(op, bias=bias, **flags)
        yield PLAIN.call(op, weight=T((1, 1, 144, 32)), **flags)
        yield replace(PLAIN, kernel=(1, 1)).call(op, bias=True, **flags)
        yield PLAIN.call(op, bias=True, conv_config=settings(weights_dtype=E("bfloat8_b")), **flags)


def invalid_arguments() -> Iterator[Case]:
    for op in OPS:
        yield PLAIN.call(op, device=None)
        for name in ("in_channels", "out_channels", "batch_size", "input_height", "input_width", "groups"):
            for value in (-1, 0, None, 1.5, "many", *((7,) if name != "groups" else ())):
                yield PLAIN.call(op, **named(name, value))
        for name in ("kernel_size", "stride", "padding", "dilation"):
            for value in (3, None, [1.5, 1], "many", []):
                yield PLAIN.call(op, **named(name, value))
        for name in ("dtype", "conv_config", "compute_config", "memory_config", "bias_tensor", "weight_tensor"):
            yield PLAIN.call(op, **named(name, "bfloat16"))
        for name in ("memory_config", "dtype", "compute_config", "return_output_dim", "mirror_kernel", "input_tensor"):
            for value in (7, [1, 1], E("TILE_LAYOUT"), DEVICE):
                yield PLAIN.call(op, **named(name, value))
        for dtype in DTYPES:
            yield PLAIN.call(op, weight=T((32, 16, 3, 3), dtype, host=True))
            yield PLAIN.call(op, bias_tensor=T((1, 1, 1, 32), dtype, host=True))
            yield PLAIN.call(op, weight=T((32, 16, 9), dtype, host=True))
        yield PLAIN.call(op, colour=1)
        yield call(f"ttnn.{op}")
        yield call(f"ttnn.{op}", T((1, 1, 64, 16), layout="ROW_MAJOR"))


# -- the relatives ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sequence1D:
    """A sequence [batch, length, channels] for conv1d."""

    in_channels: int = 16
    out_channels: int = 32
    length: int = 32
    batch: int = 1
    groups: int = 1
    dtype: str = "bfloat16"
    layout: str = "ROW_MAJOR"
    mem: Any = "DRAM"

    def call(
        self, kernel_size: int = 3, *, bias: bool = False, source: Any = None, weight: Any = None, **more: Any
    ) -> Case:
        inner = self.in_channels // max(self.groups, 1)
        arguments = {
            "input_tensor": source or T((self.batch, self.length, self.in_channels), self.dtype, self.layout, self.mem),
            "weight_tensor": weight or T((self.out_channels, inner, kernel_size), layout="ROW_MAJOR", host=True),
            "device": DEVICE,
            "in_channels": self.in_channels,
            "out_channels": self.out_channels,
            "batch_size": self.batch,
            "input_length": self.length,
            "kernel_size": kernel_size,
            "groups": self.groups,
        }
        if bias:
            arguments["bias_tensor"] = T((1, 1, 1, self.out_channels), layout="ROW_MAJOR", host=True)
        return call("ttnn.conv1d", **(arguments | more))


def one_dimension() -> Iterator[Case]:
    plain = Sequence1D()
    for length, kernel, stride, padding in product((32, 33, 7, 1024), (1, 3, 4), (1, 2), (0, 1, [1, 2])):
        yield replace(plain, length=length).call(kernel, stride=stride, padding=padding)
    for padding in ([1], [1, 1, 1], -1, [0, -1], [0, 0, 1, 1], None, "same"):
        yield plain.call(padding=padding)
    for dilation, batch in product((0, 1, 2, 4, 40), (1, 2, 5)):
        yield replace(plain, batch=batch).call(dilation=dilation, padding=2)
    for kernel, stride in ((0, 1), (3, 0), (33, 1), (32, 1), (2, 2), (4, 4), (1, 2), (-3, 1)):
        yield plain.call(kernel, stride=stride)
    for inner, outer, groups in (
        (16, 16, 16),
        (64, 64, 64),
        (32, 64, 32),
        (16, 32, 2),
        (16, 32, 3),
        (24, 24, 24),
        (5, 7, 1),
    ):
        sequence = replace(plain, in_channels=inner, out_channels=outer, groups=groups)
        for kernel, mem in product((1, 3, 4), ("DRAM", "L1")):
            yield replace(sequence, mem=mem).call(kernel, padding=1)
        yield sequence.call(padding=1, bias=True)
    for dtype, layout in product(DTYPES, LAYOUTS):
        yield replace(plain, dtype=dtype, layout=layout).call(padding=1)
    for dtype in DTYPES:
        yield plain.call(dtype=E(dtype))
        yield plain.call(weight=T((32, 16, 3), dtype, "ROW_MAJOR", host=True))
        yield plain.call(conv_config=C("Conv1dConfig", weights_dtype=E(dtype)))
    for shape in ((1, 1, 32, 16), (1, 32, 1, 16), (32, 16), (512,), (1, 1, 1, 32, 16), (1, 16, 32), (1, 33, 16)):
        yield plain.call(source=T(shape, layout="ROW_MAJOR"))
        yield plain.call(source=T(shape))
    for shape in ((32, 16, 1, 3), (32, 16, 3, 1), (32, 16), (16, 32, 3), (32, 16, 5), (1, 1, 48, 32), (1, 1, 64, 32)):
        yield plain.call(weight=T(shape, layout="ROW_MAJOR", host=True))
        yield plain.call(weight=T(shape))
        yield plain.call(weight=T(shape, layout="ROW_MAJOR"))
    for scheme, mem in product((None, *SCHEMES), ("DRAM", "L1")):
        yield replace(plain, mem=mem, length=256).call(conv_config=settings("Conv1dConfig", shard_layout=scheme))
    for place in (
        height_sharded([32, 16], 1),
        height_sharded([8, 16], 4),
        width_sharded([32, 8], 2),
        block_sharded([16, 8], (2, 2)),
    ):
        yield replace(plain, mem=place).call(padding=1)
    for kind, count in product(SLICINGS, (None, 1, 2)):
        yield replace(plain, length=256).call(slice_config=slicing(kind, count))
    for size, both in product((True, False), (True, False)):
        yield plain.call(bias=True, return_output_dim=size, return_weights_and_bias=both)
        yield plain.call(1, return_output_dim=size, return_weights_and_bias=both)
    for name in ("in_channels", "out_channels", "batch_size", "input_length", "groups"):
        for value in (0, -1, 7, None, 1.5, "many", [8]):
            yield plain.call(**named(name, value))
    for name in ("kernel_size", "stride", "dilation", "dtype", "memory_config", "conv_config", "compute_config"):
        for wrong in ("many", [3, 3], DEVICE):
            yield plain.call(weight=T((32, 16, 3), layout="ROW_MAJOR", host=True), **named(name, wrong))
    for name in ("device", "weight_tensor", "input_tensor", "colour", "slice_config"):
        for value in (7, "none"):
            yield plain.call(**named(name, value))
    for dtype in DTYPES:
        yield plain.call(weight=T((32, 16, 3), dtype, host=True))
        yield plain.call(bias_tensor=T((1, 1, 1, 32), dtype, host=True))
    for shape in ((32,), (1, 1, 1, 31), (1, 1, 32, 32)):
        yield plain.call(bias_tensor=T(shape, layout="ROW_MAJOR", host=True))
        yield plain.call(bias_tensor=T(shape))
    for config in (M("L1"), M("DRAM"), M(height_sharded([32, 32], 1))):
        yield plain.call(padding=1, memory_config=config)
    for kernel_config in KERNELS:
        yield plain.call(compute_config=compute(**kernel_config))


def transposed() -> Iterator[Case]:
    op = "conv_transpose2d"
    for stride, extra, mirror in product(((1, 1), (2, 2), (3, 2)), ((0, 0), (1, 1), (0, 1), (2, 2)), (True, False)):
        yield PLAIN.call(op, stride=stride, padding=(1, 1), output_padding=extra, mirror_kernel=mirror)
        yield replace(PLAIN, mem="L1").call(op, stride=stride, output_padding=extra, mirror_kernel=mirror)
    for extra in ((1,), (-1, 0), (1, 1, 1), None):
        yield PLAIN.call(op, stride=(2, 2), output_padding=extra)
    for kernel, stride, padding in (
        ((2, 2), (2, 2), (0, 0)),
        ((4, 4), (2, 2), (1, 1)),
        ((5, 5), (3, 3), (2, 2)),
        ((1, 1), (2, 2), (0, 0)),
    ):
        for mem, bias in product(("DRAM", "L1"), (True, False)):
            image = replace(PLAIN, kernel=kernel, size=(16, 16), mem=mem)
            yield image.call(op, stride=stride, padding=padding, bias=bias)
            yield image.call(op, stride=stride, padding=padding, conv_config=AUTOMATIC)


def output_sizes() -> Iterator[Case]:
    op = "ttnn.get_conv_output_dim"
    for size, window, stride, pad in product((8, 9, 224), (1, 3, 7), (1, 2), (0, 1, 3)):
        yield call(op, size, window, stride, pad)
        yield call(op, size, window, stride=stride, pad=pad, dilation=2)
    yield call(op, 8, 3)
    for wrong in (
        (),
        (8,),
        ("many", 3),
        (None, 3),
        (8, 3, 0),
        (8, 3, 1, None),
        (8, 3, 1, 1, "many"),
        (8, 3, 1, 1, 1, 1),
    ):
        yield call(op, *wrong)
    for name in ("input", "window", "stride", "pad", "dilation", "padding"):
        for value in ("many", None):
            yield call(op, **({"input": 8, "window": 3} | {name: value}))
    yield call(op, [8], 3)
    yield call(op, 8, 3, [1])
