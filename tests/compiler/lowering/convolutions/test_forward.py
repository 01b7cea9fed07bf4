"""Convolutions in all forms: with static weights by the library's operations, else as patches times a matrix."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tests.compiler.against_torch import BOUNDS, assert_like, check
from torch_ttnn import devices
from torch_ttnn.compiler.lowering.convolutions.forward import ACTIVATIONS, LEFT_OUT
from torch_ttnn.compiler.pipeline import Compilation, compile_graph
from torch_ttnn.options import TorchTtnnOption

F = torch.nn.functional

# Products of float32 are computed from inputs rounded to 11 bits.
FLOAT32 = {"precision": "float32", "relative": 6e-3, "absolute": 3e-3}
PRECISIONS = [{}, FLOAT32]

# name: function, shapes of input, weight and bias, the library's operation
FORMS = {
    "plain": (lambda x, w, b: F.conv2d(x, w, b, padding=1), (1, 3, 8, 9), (5, 3, 3, 3), 5, "conv2d"),
    "strided batch": (lambda x, w, b: F.conv2d(x, w, b, stride=2), (2, 33, 8, 9), (40, 33, 3, 3), 40, "conv2d"),
    "one pixel": (lambda x, w, b: F.conv2d(x, w, b), (2, 33, 8, 9), (40, 33, 1, 1), 40, "linear"),
    "strided pixel": (lambda x, w, b: F.conv2d(x, w, b, stride=2), (1, 64, 8, 8), (40, 64, 1, 1), 40, "conv2d"),
    "dilated": (lambda x, w, b: F.conv2d(x, w, b, dilation=2), (2, 6, 8, 9), (4, 6, 3, 3), 4, "conv2d"),
    "groups": (lambda x, w, b: F.conv2d(x, w, b, groups=2), (2, 6, 8, 9), (4, 3, 3, 3), 4, "conv2d"),
    "depthwise": (lambda x, w, b: F.conv2d(x, w, b, groups=32, padding=3), (1, 32, 8, 9), (32, 1, 7, 7), 32, "conv2d"),
    "patches": (lambda x, w, b: F.conv2d(x, w, b, stride=4), (1, 3, 16, 16), (40, 3, 4, 4), 40, "conv2d"),
    "same": (lambda x, w, b: F.conv2d(x, w, b, padding="same"), (1, 3, 8, 9), (5, 3, 4, 2), 5, "conv2d"),
    "line": (lambda x, w, b: F.conv1d(x, w, b, padding=1), (2, 6, 19), (8, 6, 3), 8, "conv2d"),
    "line by channel": (lambda x, w, b: F.conv1d(x, w, b, padding=3, groups=32), (2, 32, 19), (32, 1, 4), 32, "conv2d"),
    "space": (lambda x, w, b: F.conv3d(x, w, b, padding=1), (1, 3, 4, 8, 9), (5, 3, 3, 3, 3), 5, "experimental.conv3d"),
    "transposed": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        (2, 6, 5, 7),
        (6, 4, 3, 3),
        4,
        "conv2d",
    ),
    "transposed groups": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, groups=2),
        (2, 6, 5, 7),
        (6, 4, 3, 3),
        8,
        "conv2d",
    ),
    "transposed blocks": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=(2, 3)),
        (2, 6, 5, 7),
        (6, 4, 2, 3),
        4,
        "linear",
    ),
    "transposed line": (
        lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2, padding=1),
        (2, 6, 9),
        (6, 4, 3),
        4,
        "conv2d",
    ),
}


@pytest.mark.parametrize("options", PRECISIONS, ids=["bfloat16", "float32"])
@pytest.mark.parametrize("form", FORMS)
def test_weights_are_prepared_once(form, options):
    function, image, weight, bias, operation = FORMS[form]
    out = check(function, torch.randn(image), torch.randn(weight), torch.randn(bias), statics=(1, 2), **options)
    assert out.device_ops.count(f"ttnn.{operation}") == 1
    assert out.program.weights.uploads == len(out.program.lowered.weights)
    assert "prepare" not in out.program.code


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("depthwise", "line by channel")])
def test_weights_from_anywhere(form):
    function, image, weight, bias, operation = FORMS[form]
    out = check(function, torch.randn(image), torch.randn(weight), torch.randn(bias))
    assert "ttnn.matmul" in out.device_ops or operation == "linear"


@pytest.mark.parametrize("bias", [True, False])
def test_sliced_images_with_channels_that_are_not_whole_tiles(bias):
    """The library slices these in rows, but prepares weights for tiles if images are tiled."""
    torch.manual_seed(0)
    narrow, deep = torch.nn.Conv2d(8, 144, 1), torch.nn.Conv2d(144, 144, 3, padding=1, groups=144, bias=bias)
    given = [each.detach() for each in (narrow.weight, narrow.bias, *deep.parameters())]

    def two(x, *weights):
        pixels = F.conv2d(x, *weights[:2])
        return F.conv2d(pixels, weights[2], weights[3] if bias else None, padding=1, groups=144)

    out = check(two, torch.randn(10, 8, 56, 56), *given, statics=tuple(range(1, len(given) + 1)))
    assert out.device_ops.count("ttnn.conv2d") == 1


def test_no_bias():
    out = check(lambda x, w: F.conv2d(x, w), torch.randn(1, 6, 8, 8), torch.randn(4, 6, 3, 3), statics=(1,))
    assert "bias_tensor=None" in out.program.code


def test_large_kernels_with_weights_of_the_call_stay_on_the_host():
    out = check(lambda x, w: F.conv2d(x, w), torch.randn(1, 2, 16, 16), torch.randn(2, 2, 9, 9), on_device=False)
    assert out.host_ops == {"aten.convolution.default": "a kernel of 81 taps needs too many slices"}


def test_photographs_are_never_one_row():
    """A row of all pixels of a channel would have to fit into L1."""
    image, weight = torch.randn(1, 3, 800, 1066), torch.randn(8, 3, 16, 16) / 30
    out = check(lambda x, w: F.conv2d(x, w, stride=16), image, weight, statics=(1,))
    assert "852800]" not in out.program.code


def test_images_stay_with_channels_last():
    """No permutation between convolutions, pools and pointwise operations."""

    def network(x, first, second):
        x = F.max_pool2d(F.relu(F.conv2d(x, first, padding=1)), 2)
        return x + F.relu(F.conv2d(x, second, padding=1))

    out = check(network, torch.randn(2, 3, 8, 8), torch.randn(32, 3, 3, 3), torch.randn(32, 32, 3, 3), statics=(1, 2))
    assert out.device_ops[0] == "ttnn.permute"
    assert "ttnn.permute" not in out.device_ops[1:-1]


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_activation_is_part_of_the_convolution(activation, kernel):
    """As fusions pass it: by one more argument."""
    operands = torch.randn(1, 40, 8, 8), torch.randn(48, 40, kernel, kernel) * 0.03, torch.randn(48)
    captured = make_fx(lambda x, w, b: F.conv2d(x, w, b, padding=kernel // 2), tracing_mode="fake")(*operands)
    *_, node, output = captured.graph.nodes
    node.kwargs, output.args = {"activation": activation}, ((node,),)
    options = TorchTtnnOption()
    mode = node.meta["val"].fake_mode
    program = compile_graph(Compilation(captured, (1, 2), devices.resolve("emulator"), options, mode))
    function = getattr(F, activation)
    expected = function(F.conv2d(*operands, padding=kernel // 2))
    assert_like(program(operands)[0], expected, *BOUNDS["bfloat16"])
    alone = activation in LEFT_OUT and kernel > 1
    assert (f"ttnn.{activation}(" in program.code) == alone
    assert (f"UnaryOpType.{ACTIVATIONS[activation][0]}" in program.code) != alone


@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
@pytest.mark.parametrize("groups", [1, 32])
@pytest.mark.parametrize("rank", [1, 2])
def test_no_convolution_is_emitted_that_the_card_computes_wrongly(rank, groups, activation):
    """The emulator raises `ChipFault` for them, and no program contains activations that the library omits."""
    torch.manual_seed(0)
    operands = torch.randn(1, 32, *(9,) * rank), torch.randn(32, 32 // groups, *(3,) * rank) * 0.03
    convolve, function = (F.conv1d, F.conv2d)[rank - 1], getattr(F, activation or "", lambda x: x)
    out = check(lambda x, w: function(convolve(x, w, padding=1, groups=groups)), *operands, statics=(1,))
    assert not any(f"UnaryOpType.{ACTIVATIONS[name][0]}" in out.program.code for name in LEFT_OUT)
    if rank == 1 and groups == 32:
        assert "bias_tensor=weight_" in out.program.code
