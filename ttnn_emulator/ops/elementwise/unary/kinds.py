"""Facts about the kinds of elementwise functions (`ttnn.UnaryOpType`): dtypes, and which have dedicated kernels."""

from __future__ import annotations

from ttnn_emulator.enums import DataType

INT32, UINT32, UINT16, UINT8 = DataType.INT32, DataType.UINT32, DataType.UINT16, DataType.UINT8

# Integer dtypes that a kind takes; kinds that are not listed take none.
INTEGERS: dict[str, frozenset[DataType]] = {
    **dict.fromkeys(
        ("identity", "bitcast", "typecast", "relu", "relu6", "relu_max", "relu_min"),
        frozenset({INT32, UINT32, UINT16, UINT8}),
    ),
    **dict.fromkeys(("abs", "leaky_relu"), frozenset({UINT32, UINT16, UINT8})),
    **dict.fromkeys(("abs_int32", "gez", "gtz", "lez", "ltz", "neg", "signbit", "clamp_tss"), frozenset({INT32})),
    **dict.fromkeys(("eqz", "nez", "logical_not_unary", "square", "fill"), frozenset({INT32, UINT32, UINT16})),
    **dict.fromkeys(
        ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"), frozenset({INT32, UINT32, UINT16})
    ),
    **dict.fromkeys(
        (
            "bitwise_not add_unary_sfpu sub_unary_sfpu rsub maximum minimum where_tss "
            "unary_eq unary_ne unary_gt unary_ge unary_lt unary_le"
        ).split(" "),
        frozenset({INT32, UINT32}),
    ),
}

# Kinds that take integers alone.
INTEGER_ONLY = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"})

# Kinds with a dedicated compute kernel, which cannot be chained.
DEDICATED = frozenset({"identity", "lgamma", "logit", "hardswish", "logsigmoid", "where_tss", "mac_tss"})

# Kinds that can be named without parameters, and those that take some; `gelu` and its like are in both.
WITHOUT_PARAMETERS = frozenset(
    (
        "abs abs_int32 acos acosh alt_complex_rotate90 asin asinh atan atanh bitcast bitwise_not cbrt ceil cos cosh "
        "digamma eqz erf erfc erfinv exp exp2 expm1 floor frac gelu gelu_tanh gez gtz hardmish hardsigmoid hardswish "
        "i0 i1 identity isfinite isinf isnan isneginf isposinf lez lgamma log log10 log1p log2 logical_not_unary "
        "logsigmoid ltz neg nez recip relu relu6 rsqrt sigmoid sign signbit silu sin sinh softsign sqrt square tan "
        "tanh tanhshrink tiled_prod trunc"
    ).split(" ")
)
WITH_PARAMETERS = frozenset(
    (
        "add_unary_sfpu bitcast bitwise_and bitwise_or bitwise_xor celu clamp_tss div_unary_sfpu elu erf exp fill fmod "
        "gelu gelu_tanh hardshrink hardtanh heaviside leaky_relu left_shift log log10 log1p log2 logit mac_tss maximum "
        "minimum mish mul_unary_sfpu polygamma power power_iterative prelu_sfpu rdiv relu_max relu_min remainder "
        "right_shift round rpow rsqrt rsub selu sigmoid softplus softshrink sqrt sub_unary_sfpu tanh threshold "
        "typecast unary_eq unary_ge unary_gt unary_le unary_lt unary_ne where_tss xielu"
    ).split(" ")
)
TWO_PARAMETERS = frozenset({"rdiv", "selu", "where_tss", "mac_tss"})
