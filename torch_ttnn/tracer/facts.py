"""FLOPs and bytes of a call: torch's own formulas for products, and a table of rules for everything else.

**FLOPs.** Matrix products, convolutions and attention count as in `torch.utils.flop_counter`: a multiplication and an
addition are two (except gradients of grouped convolutions, which it overcounts). That counter has no other formulas;
here every operation has a rule, found in this order:

1. moving, creating or viewing values counts 0 (`MOVES`, and every view);
2. a specific rule (`RULES`): softmax, norms, pools, resampling, sorting, recurrent layers ...;
3. reductions count one per input element;
4. all others, pointwise functions and unknown operations alike, count one per element of their output, or of their
   largest input if that has more. So no operation that computes counts 0.

A function such as `exp` counts one, like an addition: its cost depends on the device.

**Bytes.** What is read and what is written: elements times their size, of all tensors of the call. Expanded and
strided tensors count in full. Two exceptions: views and allocations move nothing, or a graph of them would seem bound
by memory traffic; and lookups read the rows they pick, not the whole table.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from torch_ttnn.tracer.calls import Call, Facts

log = logging.getLogger("torch_ttnn")

Rule = Callable[[Call], int]


def facts_of(call: Call) -> Facts:
    """FLOPs, and bytes read and written. Sizes must be numbers, not symbols."""
    name = base_name(call.op)
    if call.op.is_view or name in RENAMES:
        return Facts()
    read = sum([_bytes(tensor) for _, tensor in call.inputs])
    written = sum([_bytes(tensor) for _, tensor in call.outputs]) or _written_in_place(call)
    table = LOOKUPS.get(name)
    if table is not None and isinstance(call.arguments.get(table), torch.Tensor):
        whole = _bytes(call.arguments[table])
        read += min(written, whole) - whole
    return Facts(flops_of(call), read, written)


def flops_of(call: Call) -> int:
    """By the first rule that applies."""
    if base_name(call.op) == "convolution_backward":
        return _convolution_backward(call)
    formula = flop_registry.get(call.op.overloadpacket)
    if formula is None:
        formula = ALSO_KNOWN_AS.get(base_name(call.op))
    if formula is not None:
        try:
            return int(formula(*call.args, **call.kwargs, out_val=call.result))
        except (AssertionError, TypeError, ValueError) as error:
            log.warning("torch has no FLOPs for %s here (%s); counted by its outputs", call.op, error)
            return of_largest(1)(call)
    name = base_name(call.op)
    if call.op.is_view or name in RENAMES or name in MOVES:
        return 0
    rule = RULES.get(name)
    if rule is None:
        rule = of_inputs(1) if name in REDUCTIONS else _lists if name.startswith("_foreach_") else of_largest(1)
    return rule(call)


@functools.lru_cache(maxsize=4096)
def base_name(op: torch._ops.OpOverload) -> str:
    """The name without namespace and overload, the same for the in-place variant.

    >>> base_name(torch.ops.aten.relu_.default), base_name(torch.ops.aten.add.Tensor)
    ('relu', 'add')
    """
    name = op._schema.name.partition("::")[2]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.dtype.itemsize


def _written_in_place(call: Call) -> int:
    """Bytes of the tensors that an operation without results modifies."""
    changed = [each.name for each in call.op._schema.arguments if each.alias_info and each.alias_info.is_write]
    return sum([_bytes(tensor) for name, tensor in call.inputs if name.partition("[")[0] in changed])


# -- kinds of rules ---------------------------------------------------------------------------------------------------


def _elements(tensors: list[tuple[str, torch.Tensor]]) -> list[int]:
    return [tensor.numel() for _, tensor in tensors]


def of_inputs(each: int) -> Rule:
    """`each` per element of the first input."""
    return lambda call: each * (_elements(call.inputs) or [0])[0]


def of_first_output(each: int) -> Rule:
    return lambda call: each * (_elements(call.outputs) or [0])[0]


def of_largest(each: int) -> Rule:
    """`each` per element of the output, or of the largest input if that has more."""
    return lambda call: each * max([sum(_elements(call.outputs)), *_elements(call.inputs)], default=0)


def of_all_inputs(each: int) -> Rule:
    return lambda call: each * sum(_elements(call.inputs))


def of_argument(name: str, each: int = 1) -> Rule:
    """`each` per element of the tensor of this name."""

    def rule(call: Call) -> int:
        tensor = call.arguments.get(name)
        return each * tensor.numel() if isinstance(tensor, torch.Tensor) else of_largest(each)(call)

    return rule


def _convolution_backward(call: Call) -> int:
    """Gradients of input and weight cost as much as the convolution each; torch's formula ignores groups."""
    given = call.arguments
    pixels = given["input"] if given["transposed"] else given["grad_output"]
    each = 2 * pixels.shape[0] * math.prod(pixels.shape[2:]) * given["weight"].numel()
    return each * sum([bool(wanted) for wanted in given["output_mask"][:2]])


def _windows(call: Call) -> int:
    """Pools: every element of the window, per output."""
    return math.prod(_spread(call, "kernel_size")) * _elements(call.outputs)[0]


def _spread(call: Call, name: str) -> list[int]:
    """An argument of one number, or one per axis, as one per spatial axis."""
    given = call.arguments[name]
    axes = call.outputs[0][1].dim() - 2 if call.outputs else 1
    if not isinstance(given, tuple | list):
        return [given] * axes
    return list(given) if len(given) > 1 else list(given) * axes


def _sorting(call: Call) -> int:
    """n log n comparisons along the sorted axis."""
    tensor = call.inputs[0][1]
    axis = call.arguments.get("dim", -1)
    length = tensor.shape[axis] if tensor.dim() else 1
    return tensor.numel() * max(1, math.ceil(math.log2(max(2, length))))


def _fourier(call: Call) -> int:
    """5 n log n, the usual count for an FFT."""
    tensor = max((t for _, t in (*call.inputs, *call.outputs)), key=torch.Tensor.numel)
    length = math.prod([tensor.shape[axis] for axis in call.arguments.get("dim", [-1])])
    return 5 * tensor.numel() * max(1, math.ceil(math.log2(max(2, length))))


def _recurrent(call: Call) -> int:
    """Recurrent layers: every input and state element times every gate weight, in every step."""
    tensors = dict(call.inputs)
    tokens = call.inputs[0][1]
    steps = math.prod(tokens.shape[:-1])
    weights = [t for name, t in tensors.items() if t.dim() == 2 and name != "input"]
    return 2 * steps * sum([t.numel() for t in weights])


def _distances(call: Call) -> int:
    """A difference, its power and a sum for every pair and feature."""
    return 3 * _elements(call.outputs)[0] * call.inputs[0][1].shape[-1]


def _product(left: str) -> Rule:
    """Products that torch's counter does not know: every element of the left side with every column of the right."""

    def rule(call: Call) -> int:
        matrix, out = call.arguments[left], call.outputs[0][1]
        return 2 * matrix.numel() * (out.shape[-1] if out.dim() > 1 else 1)

    return rule


def _lists(call: Call) -> int:
    """Operations on lists of tensors: one per element of the first list."""
    first = call.inputs[0][0].partition("[")[0] if call.inputs else ""
    return sum([tensor.numel() for name, tensor in call.inputs if name.partition("[")[0] == first])


def _cubic(factor: float) -> Rule:
    """Factorisations and solvers: a constant times n³ per matrix."""

    def rule(call: Call) -> int:
        matrix = call.inputs[0][1]
        size = matrix.shape[-1] if matrix.dim() else 1
        return int(factor * matrix.numel() * size)

    return rule


# -- the table --------------------------------------------------------------------------------------------------------

# Views and allocations: no bytes move.
RENAMES = frozenset(
    """_unsafe_view _reshape_alias detach alias lift lift_fresh view_as resize set squeeze unsqueeze transpose t
    as_strided swapaxes swapdims _assert_async _assert_scalar _assert_tensor_metadata sym_size sym_stride sym_numel
    sym_storage_offset sym_constrain_range sym_constrain_range_for_size _functional_assert_async is_same_size
    _functional_assert_scalar record_stream empty empty_like empty_strided empty_permuted new_empty new_empty_strided
    _make_dep_token _print""".split()
)

# Copies, gathers and fills: bytes move, nothing is computed.
MOVES = frozenset(
    """copy clone _to_copy contiguous lift_fresh_copy cat concat stack _stack _chunk_cat repeat tile expand_copy
    repeat_interleave roll flip rot90 permute_copy transpose_copy t_copy view_copy slice_copy select_copy unbind_copy
    unfold_copy split_copy split_with_sizes_copy unsafe_split unsafe_split_with_sizes squeeze_copy unsqueeze_copy
    as_strided_copy detach_copy alias_copy diagonal_copy narrow_copy channel_shuffle pixel_shuffle pixel_unshuffle
    fill zero full full_like zeros zeros_like ones ones_like new_full new_ones new_zeros scalar_tensor eye _pin_memory
    embedding index index_select gather take take_along_dim _unsafe_index index_copy index_fill
    masked_scatter masked_select scatter slice_scatter select_scatter as_strided_scatter diagonal_scatter
    slice_backward select_backward diagonal_backward constant_pad_nd reflection_pad1d reflection_pad2d
    reflection_pad3d replication_pad1d replication_pad2d replication_pad3d im2col tril triu tril_indices
    triu_indices max_unpool2d max_unpool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d
    _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d diag_embed block_diag put
    _local_scalar_dense _conj_copy _neg_view_copy _foreach_copy _foreach_zero _foreach_clone complex
    _nested_get_values_copy _fused_sdp_choice _reshape_copy""".split()
)

# One per input element.
REDUCTIONS = frozenset(
    """sum nansum mean nanmean prod amax amin aminmax max min all any argmax argmin count_nonzero logsumexp norm
    linalg_vector_norm linalg__powsum var var_mean std std_mean median nanmedian mode kthvalue trace cumsum cumprod
    cummax cummin logcumsumexp _logcumsumexp nonzero bincount histc dist equal allclose _is_all_true
    _is_any_true""".split()
)

# Tables of lookups: as many bytes are read as are returned.
LOOKUPS = {
    "embedding": "weight",
    "index": "self",
    "_unsafe_index": "self",
    "index_select": "self",
    "gather": "self",
    "take": "self",
    "masked_select": "self",
    "_embedding_bag": "weight",
    "_embedding_bag_forward_only": "weight",
}

aten: Any = torch.ops.aten
_attention = flop_registry[aten._scaled_dot_product_flash_attention]
_attention_backward = flop_registry[aten._scaled_dot_product_flash_attention_backward]
# The same formulas under names that torch's counter does not know.
ALSO_KNOWN_AS: dict[str, Callable[..., Any]] = {
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "_scaled_dot_product_fused_attention_overrideable": _attention,
    "_int_mm": flop_registry[aten.mm],
    "mkldnn_convolution": flop_registry[aten.convolution],
}

SOFTMAX = 5  # per element: maximum, subtract, exp, sum, divide
SOFTMAX_BACKWARD = 4  # multiply, sum, subtract, multiply
NORM = 7  # mean (1), subtract (1), square and sum (2), divide (1), scale and shift (2)
NORM_BACKWARD = 14  # the normalised value again (2), two sums (3), their shares (5), gradients of scale and shift (4)
NORM_WITH_STATISTICS = 4  # subtract, divide, scale, shift
TAP = 2  # per weighted neighbour: multiply, add

RULES: dict[str, Rule] = {
    **dict.fromkeys(["_softmax", "_log_softmax", "_safe_softmax", "_masked_softmax"], of_first_output(SOFTMAX)),
    **dict.fromkeys(["_softmax_backward_data", "_log_softmax_backward_data"], of_first_output(SOFTMAX_BACKWARD)),
    **dict.fromkeys(
        [
            "native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit",
            "_native_batch_norm_legit_functional", "_batch_norm_with_update", "_batch_norm_with_update_functional",
            "cudnn_batch_norm",
        ],
        of_first_output(NORM),
    ),
    **dict.fromkeys(["_fused_rms_norm", "rms_norm"], of_first_output(NORM - 3)),  # no mean to subtract, no shift
    **dict.fromkeys(
        ["_native_batch_norm_legit_no_training", "_batch_norm_no_update"], of_first_output(NORM_WITH_STATISTICS)
    ),
    **dict.fromkeys(
        [
            "native_layer_norm_backward", "native_group_norm_backward", "native_batch_norm_backward",
            "batch_norm_backward", "_fused_rms_norm_backward", "cudnn_batch_norm_backward",
        ],
        of_inputs(NORM_BACKWARD),
    ),
    **dict.fromkeys(
        [
            "max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool2d", "max_pool3d", "avg_pool1d",
            "avg_pool2d", "avg_pool3d",
        ],
        _windows,
    ),
    **dict.fromkeys(["avg_pool2d_backward", "avg_pool3d_backward"], of_largest(1)),
    **dict.fromkeys(
        ["_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d"], of_inputs(1)
    ),
    **dict.fromkeys(["upsample_linear1d", "upsample_linear1d_backward"], of_largest(2 * TAP)),
    **dict.fromkeys(
        ["upsample_bilinear2d", "upsample_bilinear2d_backward", "_upsample_bilinear2d_aa", "grid_sampler_2d",
         "grid_sampler_2d_backward"], of_largest(4 * TAP)
    ),
    **dict.fromkeys(
        ["upsample_trilinear3d", "upsample_trilinear3d_backward", "grid_sampler_3d"], of_largest(8 * TAP)
    ),
    **dict.fromkeys(["upsample_bicubic2d", "upsample_bicubic2d_backward", "_upsample_bicubic2d_aa"],
                    of_largest(16 * TAP)),
    **dict.fromkeys(["sort", "argsort", "topk", "_unique", "_unique2", "unique_dim", "unique_consecutive", "randperm"],
                    _sorting),
    **dict.fromkeys(["_fft_c2c", "_fft_c2r", "_fft_r2c"], _fourier),
    **dict.fromkeys(["mkldnn_rnn_layer", "lstm", "gru", "_cudnn_rnn"], _recurrent),
    "mkldnn_rnn_layer_backward": lambda call: 2 * _recurrent(call),
    **dict.fromkeys(["_cdist_forward", "cdist", "_euclidean_dist"], _distances),
    **dict.fromkeys(["mv", "dot", "vdot"], _product("self")),
    "addmv": _product("mat"),
    "addbmm": _product("batch1"),
    "native_dropout": of_inputs(2),  # compare with a random number, scale
    "embedding_dense_backward": of_argument("grad_output"),
    **dict.fromkeys(["index_put", "_unsafe_index_put", "_index_put_impl"], of_argument("values")),
    "index_add": of_argument("source"),
    **dict.fromkeys(["scatter_add", "scatter_reduce"], of_argument("src")),
    **dict.fromkeys(["_embedding_bag", "_embedding_bag_forward_only"], of_argument("indices")),
    **dict.fromkeys(["linalg_inv_ex", "linalg_solve_ex", "_linalg_solve_ex", "linalg_lu_factor_ex"], _cubic(2)),
    **dict.fromkeys(["linalg_cholesky_ex", "cholesky"], _cubic(1 / 3)),
    **dict.fromkeys(["linalg_qr", "linalg_eigh", "_linalg_eigh", "_linalg_svd", "_linalg_det"], _cubic(4)),
    **dict.fromkeys(["_fused_adam", "_fused_adamw"], of_all_inputs(3)),
}  # fmt: skip
