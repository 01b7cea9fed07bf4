"""Softmax and norms of moreh, with their gradients: general kernels that handle one tile at a time."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import DataType, MathFidelity
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.normalization.passes import Passes, math_settings, passes_of
from ttnn_emulator.timing.families.normalization.softmax import general_launch
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.tile_by_tile import Operands, bytes_of_tile, operands_launch, tiles_of

FAMILY = "moreh normalization"
SOFTMAXES = {
    f"ttnn.moreh_{name}{suffix}": f"MorehSoftmax{'Backward' if suffix else ''}Operation"
    for name in ("softmax", "softmin", "logsoftmax")
    for suffix in ("", "_backward")
}
# Passes over the input of each kernel: tile by tile, each with its own result.
NORMS = {
    "ttnn.moreh_layer_norm": ("MorehLayerNormOperation", 7),
    "ttnn.moreh_group_norm": ("MorehGroupNormOperation", 7),
    "ttnn.prim.moreh_layer_norm_backward_input_grad": ("MorehLayerNormBackwardInputGradOperation", 12),
    "ttnn.prim.moreh_layer_norm_backward_gamma_beta_grad": ("MorehLayerNormBackwardGammaBetaGradOperation", 6),
    "ttnn.prim.moreh_group_norm_backward_input_grad": ("MorehGroupNormBackwardInputGradOperation", 12),
    "ttnn.prim.moreh_group_norm_backward_gamma_beta_grad": ("MorehGroupNormBackwardGammaBetaGradOperation", 6),
}


def _settings(call: Call) -> tuple[MathFidelity, bool, bool]:
    given = call.arguments.get("compute_kernel_config")
    settings = math_settings(given, MathFidelity.HiFi4, fp32=False, approximate=False)
    return settings.fidelity, settings.fp32, settings.approximate


def _place(call: Call, source: Spec) -> int:
    dim = int(call.arguments.get("dim", -1))
    return dim - len(source.shape) if dim >= 0 else dim


@prices(*SOFTMAXES)
def softmax(call: Call) -> Sequence[Launch]:
    """The gradient reads two tensors and has the passes of the function without its maximum."""
    source, out = call.tensors[0], call.outputs[0]
    settings = math_settings(
        call.arguments.get("compute_kernel_config"), MathFidelity.HiFi4, fp32=False, approximate=False
    )
    code = SOFTMAXES[call.name]
    if "backward" not in call.name:
        return [general_launch(source, out, _place(call, source), settings, call.board, code=code, family=FAMILY)]
    passes = passes_of(call.board, settings.fidelity, fp32=settings.fp32, approximate=settings.approximate)
    cycles = _step_cycles(passes, source, 4)
    work = Operands([(spec, 2.0) for spec in call.tensors[:2]], [(out, 1.0)], cycles, one_by_one=True)
    return [operands_launch(code, FAMILY, work, call.board)]


def _step_cycles(passes: Passes, source: Spec, steps: int) -> float:
    size = float(bytes_of_tile(source))
    return steps * passes.combined(size, size, size, product=True, block=1) + passes.summed(size)


@prices(*NORMS)
def norm(call: Call) -> Sequence[Launch]:
    """Statistics first, then the scaling: the large kernels read the input again for each."""
    program, steps = NORMS[call.name]
    fidelity, fp32, approximate = _settings(call)
    passes = passes_of(call.board, fidelity, fp32=fp32, approximate=approximate)
    largest = max(call.tensors, key=tiles_of)
    tiles = tiles_of(largest)
    outputs = [spec for spec in call.outputs if spec is not None]
    reads = [(spec, min(tiles_of(spec) / tiles, 1.0) * (2 if spec is largest else 1)) for spec in call.tensors]
    writes = [(spec, min(tiles_of(spec) / tiles, 1.0)) for spec in outputs]
    share = 1
    if largest.dtype is not DataType.INT32 and largest.shape:
        share = max(largest.padded_shape[-1] // largest.tile.width, 1)
    work = Operands(
        reads, writes, _step_cycles(passes, largest, steps), steps=tiles, one_by_one=True, largest_share=share
    )
    return [operands_launch(program, FAMILY, work, call.board)]
