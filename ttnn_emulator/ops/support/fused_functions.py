"""Functions fused into the kernel of another operation: which ones the library refuses, and which it omits.

The library inserts the code of a fused function by its kind. Kinds with a dedicated kernel have no such code, so
nothing is inserted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import ALL_ENUMS
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.numerics.functions.apply import BY_NAME, Activation, activation_of
from ttnn_emulator.ops.elementwise.unary.kinds import WITH_PARAMETERS, WITHOUT_PARAMETERS

LEFT_OUT = frozenset({"hardswish", "lgamma", "logit", "logsigmoid"})
CALLED = {"LOGSIGMOID": "log_sigmoid"}  # operations whose name differs from the kind
# Kinds whose code depends on a dtype that convolutions do not pass.
NEEDS_DTYPE = frozenset(
    (
        "add_unary_sfpu ceil clamp_tss eqz floor frac gez gtz lez logical_not_unary ltz maximum minimum neg nez "
        "relu_max relu_min rsub signbit square trunc unary_eq unary_ge unary_gt unary_le unary_lt unary_ne"
    ).split(" ")
)
# Kinds whose code uses the input dtype of an elementwise operation, and bfloat16 elsewhere.
WITHOUT_INPUT_DTYPE = frozenset({"celu", "digamma", "elu", "erf", "i1", "selu", "softplus"})
COUNTED = frozenset({"rdiv", "selu"})  # two parameters, whose number the library checks
UNCOUNTED = frozenset({"clamp_tss", "hardtanh", "polygamma", "softplus", "threshold", "xielu"})  # not checked
OTHER_REGISTERS = frozenset({"mac_tss", "where_tss"})  # their operands are in registers that only their kernels fill
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/unary/common/unary_op_utils.cpp, VecMode
VECTOR_MODES = (2.0, 4.0)
LEFT_FACES = 2.0


def require_fusable(given: Any, *, typed: bool = True, packs_relu: bool = False) -> None:
    """Refuse what the library refuses.

    `typed` says whether it knows the dtype of the function's argument, `packs_relu` that the packer does RELU,
    whatever its parameters are.
    """
    given = as_unary(given)
    name, params = given.op_type.name.lower(), given.params
    if name == "relu" and packs_relu:
        return
    if params:
        require(name in WITH_PARAMETERS or name == "softcap", f"{name} has no parameters")
        require(len(params) > 1 or name not in COUNTED, f"{name} takes two parameters")
        require(
            name != "sigmoid" or params[0] in VECTOR_MODES, f"the vector mode of sigmoid is 2 or 4, not {params[0]}"
        )
    else:
        require(name in WITHOUT_PARAMETERS, f"{name} needs a parameter")
    require(typed or name not in NEEDS_DTYPE, f"{name} needs a dtype, and a convolution gives none")


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/unary/common/unary_op_utils.cpp, get_op_init_and_func
def fault_of(*given: Any) -> ChipFault | None:
    """Wrong results of the card with these functions: one is omitted, or applied to a part of the tensor."""
    for each in map(as_unary, given):
        kind, params = each.op_type.name, each.params
        if kind.lower() in LEFT_OUT:
            return ChipFault(
                f"the library leaves {kind} out when it is fused into another operation",
                hint=f"Apply ttnn.{CALLED.get(kind, kind.lower())} to the result.",
            )
        if kind.lower() in OTHER_REGISTERS:
            return ChipFault(f"{kind}, fused into another operation, reads registers that no instruction filled")
        if kind.lower() in UNCOUNTED and len(params) == 1:
            return ChipFault(f"{kind} takes two parameters: the library reads past the one that was given")
        if kind == "SIGMOID" and params and params[0] == LEFT_FACES:
            return ChipFault("vector mode 2 reaches the left half of every tile only")
    return None


def raising(fault: ChipFault) -> Callable[..., Any]:
    """A computation on a card that is wrong."""

    def run(*values: Any) -> Any:
        raise fault.with_traceback(None)

    return run


def fused(given: Any) -> Activation:
    """The function as the kernel applies it."""
    given = as_unary(given)
    name = given.op_type.name.lower()
    if name == "bitcast":
        return Activation("identity")  # it needs no code
    made = activation_of(name, given.params if name != "relu" else ())
    return Activation(f"fused {name}", made.params, made.approx) if name in WITHOUT_INPUT_DTYPE else made


def as_unary(given: Any) -> UnaryWithParam:
    """A function by its name, by its kind, or as it is."""
    if isinstance(given, UnaryWithParam):
        return given
    if not isinstance(given, str):
        return UnaryWithParam(given)
    require(given in BY_NAME, f"no elementwise function is called {given!r}")
    name, params = BY_NAME[given]
    return UnaryWithParam(ALL_ENUMS["UnaryOpType"][name.upper()], *params)
