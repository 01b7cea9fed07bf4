"""Gradients with dedicated kernels: of tanh, sigmoid and gelu, and both gradients of a product at once."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.enums import ALL_ENUMS, FLOAT_DTYPES
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, internal, operation
from ttnn_emulator.numerics.programs.elementwise import gradients
from ttnn_emulator.ops.support.common_checks import into, memory_of, require_on_device
from ttnn_emulator.ops.support.derived_shards import lacks_shards
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec, padded_spec, tile_bytes

GeluVariant = ALL_ENUMS["GeluVariant"]
BUFFERED_TILES = 2  # tiles per circular buffer


def _check(spec: Spec, name: str) -> None:
    require(spec.dtype in FLOAT_DTYPES, f"{name} must be of a floating dtype, not {spec.dtype}")
    require_on_device(spec, name)
    if spec.is_tile and spec.shard_spec is not None:
        shard = spec.shard_spec.shape
        require(
            shard[0] % TILE_SIZE == 0 and shard[1] % TILE_SIZE == 0,
            f"{name} has shards of {list(shard)}, not of whole tiles",
        )


def gradient_plan(
    kind: str,
    grad_tensor: Spec,
    input_tensor: Spec,
    memory_config: MemoryConfig | None,
    input_grad: Spec | None = None,
) -> Plan:
    """Check and plan one kernel that takes a gradient and an input of the same shape and layout."""
    _check(input_tensor, "the input")
    _check(grad_tensor, "the gradient")
    for other, name in ((grad_tensor, "the gradient"), (input_grad, "input_grad")):
        if other is None:
            continue
        require(
            other.shape == input_tensor.shape and other.padded_shape == input_tensor.padded_shape,
            f"{name} has shape {list(other.shape)}, the input {list(input_tensor.shape)}",
        )
        require(other.layout is input_tensor.layout, f"{name} is in {other.layout}, the input in {input_tensor.layout}")
    if input_grad is not None:
        _check(input_grad, "input_grad")
        require(
            input_grad.dtype is input_tensor.dtype,
            f"input_grad is of {input_grad.dtype}, the input of {input_tensor.dtype}",
        )
        out = input_grad
    else:
        config = memory_of(memory_config, input_tensor)
        require(not (config.is_sharded() and lacks_shards(config)), f"{config.brief()} has no shard spec")
        out = padded_spec(
            input_tensor.shape, input_tensor.padded_shape, input_tensor.dtype, input_tensor.layout, config
        )
    taken = (grad_tensor, input_tensor, out)
    in_shards = all(spec.is_sharded for spec in taken)  # each core then computes on its own shard
    return Plan(
        [out],
        gradients.prepare(kind, grad_tensor.dtype, input_tensor.dtype, out.dtype),
        reads=("grad_tensor", "input_tensor"),
        into=into(input_grad, "input_grad"),
        l1_bytes=0 if in_shards else BUFFERED_TILES * sum(tile_bytes(spec.tile, spec.dtype) for spec in taken),
    )


@operation("ttnn.tanh_bw")
def tanh_bw(
    grad_tensor: Spec,
    input_tensor: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    input_grad: Spec | None = None,
) -> Plan:
    """The gradient times sech²(x)."""
    return gradient_plan("tanh", grad_tensor, input_tensor, memory_config, input_grad)


@operation("ttnn.sigmoid_bw")
def sigmoid_bw(grad_tensor: Spec, input_tensor: Spec, *, memory_config: MemoryConfig | None = None) -> Plan:
    """The gradient times s (1 - s) with s = sigmoid(x)."""
    return gradient_plan("sigmoid", grad_tensor, input_tensor, memory_config)


@operation("ttnn.gelu_bw")
def gelu_bw(
    grad_tensor: Spec,
    input_tensor: Spec,
    *,
    variant: Any = GeluVariant.Accurate,
    memory_config: MemoryConfig | None = None,
    input_grad: Spec | None = None,
) -> Plan:
    """The gradient times the derivative of gelu, or of its approximation by tanh."""
    require(variant is not GeluVariant.FastLut, "the fast variant of gelu has no gradient")
    kind = "gelu_tanh" if variant is GeluVariant.Tanh else "gelu"
    return gradient_plan(kind, grad_tensor, input_tensor, memory_config, input_grad)


@internal("ttnn.mul_bw")
def product_gradients(
    grad_tensor: Spec,
    input_tensor: Spec,
    other_tensor: Spec,
    memory_config: MemoryConfig,
    input_grad: Spec | None,
    other_grad: Spec | None,
) -> Plan:
    """Both gradients of a product of two interleaved tensors of one shape, in one pass over the gradient."""

    def output(factor: Spec, given: Spec | None) -> Spec:
        if given is not None:
            return given
        return padded_spec(factor.shape, factor.padded_shape, factor.dtype, factor.layout, memory_config)

    of_input, of_other = output(input_tensor, input_grad), output(other_tensor, other_grad)
    to_input = gradients.product(grad_tensor.dtype, other_tensor.dtype, of_input.dtype)
    to_other = gradients.product(grad_tensor.dtype, input_tensor.dtype, of_other.dtype)
    return Plan(
        [of_input, of_other],
        lambda g, x, y: (to_input(g, y), to_other(g, x)),
        reads=("grad_tensor", "input_tensor", "other_tensor"),
        into=(
            "input_grad" if input_grad is not None else None,
            "other_grad" if other_grad is not None else None,
        ),
        l1_bytes=BUFFERED_TILES
        * sum(
            tile_bytes(spec.tile, spec.dtype) for spec in (grad_tensor, input_tensor, other_tensor, of_input, of_other)
        ),
    )
