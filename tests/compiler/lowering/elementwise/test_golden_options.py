"""Every operation and option that a lowering uses has a golden vector of the real kernels, or a reason for none.

What is used is read from the source of lowerings and fusions: names of operations, keywords of calls, kinds of fused
functions. What is covered is read from the code of the golden vectors in the same way.
"""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import pytest

from torch_ttnn.compiler import fusion, lowering
from torch_ttnn.compiler.fusion.products import CONVOLUTION_ACTIVATIONS, LINEAR_ACTIVATIONS
from torch_ttnn.compiler.lowering.convolutions.forward import ACTIVATIONS, LEFT_OUT
from ttnn_emulator.conformance import golden
from ttnn_emulator.execution.operation_table import OPERATIONS

Use = tuple[str, str]  # an operation, and an option of it or ""

SPREAD = "**"
SIZES = "sizes of the problem and settings named elsewhere in the same file"
SAME_MATH = "the kernel takes its math settings as that of max_pool2d and conv2d does, which have vectors"
COMPOSITE = "composed of operations that have vectors"
TORCH = "compared with torch in every dtype; the kernels of its family have vectors"
EXACT = "exact on integers or on the sign: compared with torch, all bits equal"
MOVES = "only moves values: compared with torch, all bits equal"
FUSED = "the kernel of add, which has vectors with functions of either operand and other dtypes, with another operation"
RANDOM = "random numbers: their distribution is compared with torch in test_dropout.py"

# (operation, option) without a vector: why none is needed.
REASONS: dict[Use, str] = {
    ("addalpha", ""): COMPOSITE,
    ("subalpha", ""): COMPOSITE,
    ("atan2", ""): TORCH,
    ("avg_pool2d", "compute_kernel_config"): SAME_MATH,
    ("bitwise_not", ""): EXACT,
    ("divide", "rounding_mode"): "floor and trunc, which have vectors, after the division, which has some",
    ("elu", ""): "its kernel is that of celu, which has vectors, with alpha 1",
    ("elu", "alpha"): "its kernel is that of celu, which has vectors",
    **{
        ("experimental.conv3d", option): "patches and a matmul, whose kernels have vectors; compared with torch"
        for option in (
            "", "bias_tensor", "compute_kernel_config", "device", "dilation", "dtype", "input_tensor", "kernel_size",
            "output_channels", "padding", "padding_mode", "stride", "weight_tensor",
        )
    },
    **{
        ("experimental.paged_update_cache", option): MOVES
        for option in ("", "compute_kernel_config", "update_idxs_tensor")
    },
    ("fill", ""): MOVES,
    ("gather", ""): MOVES,
    ("gelu", "variant"): "the tanh of a polynomial, times x; tanh has vectors. Held against torch",
    ("gelu_bw", ""): TORCH,
    ("gelu_bw", "variant"): TORCH,
    **{("grid_sample", option): TORCH for option in ("", "align_corners", "mode", "padding_mode")},
    ("hardshrink", ""): EXACT,
    ("hardshrink", "lambd"): EXACT,
    ("hardswish", ""): "hardsigmoid, which has a vector of all arguments, times x",
    ("le", ""): "the kernel of ge, which has vectors, with its operands exchanged",
    ("log10", ""): "the kernel of log and log2, which have vectors, with another factor",
    ("logaddexp2", ""): "the kernel of logaddexp, which has vectors, to another base",
    ("logical_or", ""): EXACT,
    ("matmul", "transpose_a"): "the operand is transposed before the matmul, as transpose_b, which has vectors",
    **{("moreh_fold", o): MOVES for o in ("", "dilation", "kernel_size", "output_size", "padding", "stride")},
    ("moreh_getitem", ""): MOVES,
    ("ge", "dtype"): EXACT,
    ("lt", "dtype"): EXACT,
    **{("multiply", o): FUSED for o in ("dtype", "input_tensor_a_activations", "input_tensor_b_activations")},
    **{("subtract", o): FUSED for o in ("dtype", "input_tensor_b_activations")},
    **{("rand", o): RANDOM for o in ("", "device", "dtype", "layout", "seed")},
    ("rpow", ""): "exp2 and log2 of the vector unit, which have vectors",
    ("scale_mask_softmax", ""): "softmax after a multiplication and an addition; all have vectors",
    ("scatter", "reduce"): "additions in float32 by the data movement processor: compared with torch",
    ("selu", "alpha"): "selu has vectors with the same two numbers as its defaults",
    ("selu", "scale"): "selu has vectors with the same two numbers as its defaults",
    ("sinh", ""): "the exponential of cosh, which has vectors, with a subtraction",
    ("sort", "stable"): "the library sorts the same way with any value",
    ("upsample", "memory_config"): MOVES,
    ("zeros", ""): MOVES,
    **{
        (operation, SPREAD): SIZES
        for operation in (
            "avg_pool2d", "conv2d", "linear", "matmul", "max", "max_pool2d", "prepare_conv_bias",
            "prepare_conv_weights", "scale_mask_softmax", "softmax", "sum",
            "transformer.scaled_dot_product_attention",
        )
    },
}  # fmt: skip
CONFIGS = ("Conv2dConfig", "WormholeComputeKernelConfig", "SDPAProgramConfig")


def dotted(node: ast.AST) -> str:
    """`a.b` of an expression `ttnn.a.b`, else nothing."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed(parts)) if isinstance(node, ast.Name) and node.id == "ttnn" else ""


def calls(tree: ast.AST) -> Iterator[Use]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func):
            yield dotted(node.func), ""
            for keyword in node.keywords:
                yield dotted(node.func), keyword.arg or SPREAD


def used() -> set[Use]:
    """Calls of the library, and operations that tables of the lowerings name."""
    found: set[Use] = set()
    for package in (lowering, fusion):
        for path in pathlib.Path(package.__file__).parent.rglob("*.py"):
            if path.stem == "preparation":  # its strings name functions of torch
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found.update(calls(tree))
            strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
            found.update((each, "") for each in strings if isinstance(each, str))
    return {use for use in found if f"ttnn.{use[0]}" in OPERATIONS or use[0] in CONFIGS}


@pytest.fixture(scope="module")
def codes() -> list[str]:
    return [vector.code for name in golden.sets() for vector in golden.vectors(name)]


def test_every_option_has_a_vector_or_a_reason(codes):
    covered = {use for code in codes for use in calls(ast.parse(code))}
    uncovered = used() - covered
    assert uncovered - set(REASONS) == set(), "used by a lowering, with neither a golden vector nor a reason for none"
    assert set(REASONS) - uncovered == set(), "a reason that is not needed"


def fused_kinds(codes: list[str], operation: str) -> set[str]:
    """Kinds of functions in the calls of one operation."""
    return {
        dotted(node).removeprefix("UnaryOpType.")
        for code in codes
        if f"ttnn.{operation}(" in code
        for node in ast.walk(ast.parse(code))
        if dotted(node).startswith("UnaryOpType.")
    }


BY_NAME = {"gelu_tanh": "without a core grid, linear runs it as an operation of its own: see gelu(variant=…) above"}


def test_every_fused_activation_of_convolutions_has_a_vector(codes):
    needed = {ACTIVATIONS[name][0] for name in CONVOLUTION_ACTIVATIONS if name not in LEFT_OUT}
    assert needed - fused_kinds(codes, "conv2d") == set()


def test_every_fused_activation_of_linears_has_a_vector_or_a_reason(codes):
    texts = [code for code in codes if "ttnn.linear(" in code or "ttnn.matmul(" in code]
    kinds = fused_kinds(texts, "linear") | fused_kinds(texts, "matmul")
    covered = {name for name in LINEAR_ACTIVATIONS if any(f"activation='{name}'" in text for text in texts)}
    covered |= {name for name in LINEAR_ACTIVATIONS if name.upper() in kinds}
    assert set(LINEAR_ACTIVATIONS) - covered == set(BY_NAME)


def test_every_fused_function_of_binary_operations_has_a_vector(codes):
    written = set()
    for path in pathlib.Path(lowering.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if dotted(node).startswith("UnaryOpType."):
                written.add(dotted(node).removeprefix("UnaryOpType."))
    covered = fused_kinds(codes, "add") | fused_kinds(codes, "subtract") | fused_kinds(codes, "multiply")
    assert written - covered == set()
