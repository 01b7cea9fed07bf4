"""`ttnn.MatmulDeviceOperation` and `ttnn.LayerNormDeviceOperation`: output specs of an operation without running it.

As in the library, nothing is checked here: checks are part of the call. Programs are not described.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import ALL_ENUMS, DataType, Layout
from ttnn_emulator.errors import InvalidArgument, NotEmulated, require
from ttnn_emulator.ops.matmul.device_operation import Asked, chosen_program, default_math, kernel_config, run, target_of
from ttnn_emulator.ops.matmul.operands import Operands, output_shape, output_tile
from ttnn_emulator.ops.matmul.outputs import output_spec
from ttnn_emulator.ops.matmul.program_configs import Program, program_of
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE
from ttnn_emulator.tensors.spec import Spec, padded_spec
from ttnn_emulator.tensors.storage import Storage
from ttnn_emulator.tensors.tensor import Tensor

Stage: Any = ALL_ENUMS["DistributedLayerNormStage"]


def _empty(spec: Spec, like: Tensor) -> Tensor:
    device = like._device
    if device is None:
        raise InvalidArgument("the tensor is on the host; outputs are on the device of the inputs")
    on_device = spec.with_(on_device=True)
    return Tensor.of(on_device, Storage.on_device(on_device, device), device)


def _key(params: Any) -> Any:
    return params.snapshot_key() if hasattr(params, "snapshot_key") else params


# -- matmul -----------------------------------------------------------------------------------------------------------


def create_matmul_attributes(
    input_tensor_a: Tensor, input_tensor_b: Tensor, parameters: Any, optional_output_tensors: Sequence[Tensor | None]
) -> Any:
    """The parameters of a matmul of these tensors with their defaults filled in; the program is not chosen yet."""
    from ttnn_emulator.namespaces import attribute

    filled = copy.copy(parameters)
    of = Operands(input_tensor_a._spec, input_tensor_b._spec, parameters.transpose_a, parameters.transpose_b)
    output = next((tensor for tensor in optional_output_tensors if tensor is not None), None)
    dtype = parameters.output_dtype or (input_tensor_a.dtype if output is None else output.dtype)
    filled.output_dtype = dtype
    filled.output_mem_config = parameters.output_mem_config or DRAM_MEMORY_CONFIG
    if filled.bcast_batch is None:
        filled.bcast_batch = of.batch_b == 1
    if filled.compute_kernel_config is None:
        device: Any = input_tensor_a._device
        math = default_math(of, _asked(filled), dtype, device.board.arch)
        filled.compute_kernel_config = attribute("ttnn.WormholeComputeKernelConfig")(
            math_fidelity=math.fidelity,
            math_approx_mode=math.approx,
            fp32_dest_acc_en=math.fp32_acc,
            packer_l1_acc=math.l1_acc,
        )
    return filled


def _program(params: Any) -> Program | None:
    return None if params.program_config is None else program_of(params.program_config)


def _asked(params: Any) -> Asked:
    math, full_sync = kernel_config(params.compute_kernel_config)
    if params.untilize_out:
        raise NotEmulated("matmul parameters with untilize_out are not emulated")
    return Asked(
        transpose_a=params.transpose_a,
        transpose_b=params.transpose_b,
        memory_config=params.output_mem_config or DRAM_MEMORY_CONFIG,
        dtype=params.output_dtype,
        program=_program(params),
        math=math,
        full_sync=full_sync,
    )


class MatmulDeviceOperation:
    """A matmul by its parameters (`ttnn.MatmulParams`) and tensors (`ttnn.MatmulInputs`)."""

    @staticmethod
    def compute_output_specs(operation_attributes: Any, tensor_args: Any) -> list[Spec]:
        """Output specs, for parameters that `ttnn.create_matmul_attributes` has filled in."""
        require(operation_attributes.output_dtype is not None, "the parameters lack output_dtype: fill them in first")
        a, b = tensor_args.input_tensors[:2]
        asked = _asked(operation_attributes)
        of = Operands(a._spec, b._spec, asked.transpose_a, asked.transpose_b)
        target = target_of(a._device)
        math = asked.math or default_math(of, asked, operation_attributes.output_dtype, target.arch)
        dtype: DataType = operation_attributes.output_dtype
        tile = output_tile(of, asked.memory_config, None, None)
        shape = output_shape(of.a_shape, of.b_shape)
        if not asked.memory_config.is_sharded():
            return [
                Spec.of(shape, dtype, Layout.TILE, asked.memory_config, tile=None if tile == DEFAULT_TILE else tile)
            ]
        program, _ = chosen_program(of, asked, math, dtype, None, target)
        return [output_spec(of, program, shape, dtype, asked.memory_config, tile, target.grid)]

    @staticmethod
    def create_output_tensors(operation_attributes: Any, tensor_args: Any) -> list[Tensor]:
        """New output tensors, or those passed as outputs."""
        passed = [tensor for tensor in tensor_args.optional_output_tensors or () if tensor is not None]
        if passed:
            return passed
        specs = MatmulDeviceOperation.compute_output_specs(operation_attributes, tensor_args)
        return [_empty(spec, tensor_args.input_tensors[0]) for spec in specs]

    @staticmethod
    def compute_program_hash(operation_attributes: Any, tensor_args: Any) -> int:
        """A hash that calls of the same program share; the library's hashes differ."""
        require(operation_attributes.program_config is not None, "the parameters lack program_config")
        specs = tuple(tensor._spec for tensor in tensor_args.input_tensors)
        return hash(("matmul", _key(operation_attributes), specs)) & (2**64 - 1)

    @staticmethod
    def invoke(input_tensor_a: Tensor, input_tensor_b: Tensor, bias: Tensor | None = None, *, attributes: Any) -> Any:
        """Multiply with these parameters."""
        return [run(input_tensor_a, input_tensor_b, bias, _asked(attributes), None)]


# -- layer norm -------------------------------------------------------------------------------------------------------


def _norm_config(params: Any, spec: Spec) -> MemoryConfig:
    config = params.output_mem_config or DRAM_MEMORY_CONFIG
    if config.shard_spec is not None or not config.is_sharded():
        return config
    return MemoryConfig(config.memory_layout, config.buffer_type, spec.memory_config.shard_spec)


def _is_sharded_program(params: Any) -> bool:
    return type(params.program_config).__name__ == "LayerNormShardedMultiCoreProgramConfig"


class LayerNormDeviceOperation:
    """A layer or RMS norm by its parameters (`ttnn.LayerNormParams`) and tensors (`ttnn.LayerNormInputs`)."""

    @staticmethod
    def compute_output_specs(operation_attributes: Any, tensor_args: Any) -> Spec:
        """Output specs: of a sharded program tiles of the requested dtype, otherwise like the input."""
        params, spec = operation_attributes, tensor_args.input._spec
        if params.distributed_norm_stage not in (None, Stage.NOT_DISTRIBUTED):
            raise NotEmulated("outputs of the stages of a norm over several chips are not emulated")
        if not _is_sharded_program(params):
            return spec.with_(memory_config=params.output_mem_config or DRAM_MEMORY_CONFIG)
        if params.program_config.inplace:
            return spec
        config = _norm_config(params, spec)
        return padded_spec(spec.shape, spec.padded_shape, params.dtype or spec.dtype, Layout.TILE, config)

    @staticmethod
    def create_output_tensors(operation_attributes: Any, tensor_args: Any) -> Tensor:
        """A new output tensor; the input itself where the program works in place."""
        if _is_sharded_program(operation_attributes) and operation_attributes.program_config.inplace:
            return tensor_args.input
        spec = LayerNormDeviceOperation.compute_output_specs(operation_attributes, tensor_args)
        return _empty(spec, tensor_args.input)

    @staticmethod
    def compute_program_hash(operation_attributes: Any, tensor_args: Any) -> int:
        """A hash that calls of the same program share; the library's hashes differ."""
        tensors = (tensor_args.input, tensor_args.weight, tensor_args.bias, tensor_args.residual_input_tensor)
        specs = tuple(None if tensor is None else tensor._spec for tensor in tensors)
        return hash(("layer norm", _key(operation_attributes), specs)) & (2**64 - 1)

    @staticmethod
    def select_program_factory(operation_attributes: Any, tensor_args: Any) -> Any:
        raise NotEmulated("ttnn.LayerNormDeviceOperation.select_program_factory: programs are not described")
