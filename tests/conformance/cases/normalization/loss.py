"""Losses and optimizers: mean squared and absolute error, negative log likelihood, Adam, SGD, gradient clipping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.nn import functional

import ttnn_emulator as ttnn
from ttnn_emulator.conformance.case import SHAPES, STORABLE, Case, E, M, T, call, product, sharded_inputs
from ttnn_emulator.conformance.numeric_row import Row

from .normalization import CONFIGS, MEMORIES, SQUARE

PAIR = (40, 70)
GRADIENT = (1, 2, 40, 70)


def cases() -> Iterator[Case]:
    for family in (errors, likelihood, likelihood_gradients, adam, sgd, clipping):
        yield from family()


def errors() -> Iterator[Case]:
    for name in ("mse_loss", "l1_loss"):
        op = f"ttnn.{name}"
        for shape, mode in product((*SHAPES, ()), ("NONE", "SUM", "MEAN")):
            yield call(op, T(shape), T(shape), reduction=E(f"LossReductionMode.{mode}"))
        for dtype, layout in STORABLE:
            yield call(op, T((5, 33), dtype, layout), T((5, 33), dtype, layout))
            yield call(op, T((5, 33)), T((5, 33), dtype, layout))
            yield call(op, T((5, 33), dtype, layout), T((5, 33), dtype, layout), reduction=E("LossReductionMode.SUM"))
        for other in ((33,), (1, 33), (5, 1), (5, 32), (2, 5, 33)):
            yield call(op, T((5, 33)), T(other))
            yield call(op, T((5, 33)), T(other), reduction=E("LossReductionMode.MEAN"))
        for memory, mode in product(MEMORIES, ("NONE", "MEAN")):
            yield call(op, T(SQUARE), T(SQUARE), memory_config=M(memory), reduction=E(f"LossReductionMode.{mode}"))
        for source in sharded_inputs():
            yield call(op, source, source)
            yield call(op, source, T(SQUARE), reduction=E("LossReductionMode.SUM"))
        for out in (T((5, 33)), T((5, 33), "float32"), T((5, 32)), T((5, 33), mem="L1")):
            yield call(op, T((5, 33)), T((5, 33)), output_tensor=out)
        yield call(op, T((5, 33)), 1.0)
        yield call(op, T((5, 33)))
        yield call(op, T((5, 33)), T((5, 33)), reduction="mean")
        yield call(op, T((5, 33), host=True), T((5, 33)))


# Shapes of inputs and of their targets.
CLASSES = (
    ((40, 10), (1, 40)),
    ((40, 10), (40,)),
    ((3, 10, 7), (3, 7)),
    ((3, 10, 7, 9), (3, 7, 9)),
    ((2, 10, 3, 7, 9), (2, 3, 7, 9)),
)


def likelihood() -> Iterator[Case]:
    op = "ttnn.moreh_nll_loss"
    for (shape, target), mode in product(CLASSES, ("none", "sum", "mean", "x")):
        wanted = T(target, "int32")
        yield call(op, T(shape), wanted, mode)
        yield call(op, T(shape), wanted, mode, weight_tensor=T((1, 10)), divisor_tensor=T((1, 1)))
        yield call(op, T(shape), wanted, mode, output_tensor=T((1, 1)), divisor_tensor=T((1, 1)), ignore_index=2)
    shape, target = (3, 10, 7, 9), (3, 7, 9)
    for dtype, layout in STORABLE:
        yield call(op, T(shape, dtype, layout), T(target, "int32"), "sum")
        yield call(op, T(shape), T(target, dtype, layout), "sum")
        yield call(op, T(shape), T(target, "int32"), "sum", weight_tensor=T((1, 10), dtype, layout))
        yield call(op, T(shape), T(target, "int32"), "mean", divisor_tensor=T((1, 1), dtype, layout))
    for memory in MEMORIES:
        yield call(op, T((1, 4, 128, 128)), T((1, 128, 128), "int32"), "none", memory_config=M(memory))
    for given in CONFIGS:
        yield call(op, T(shape), T(target, "int32"), "sum", compute_kernel_config=given)
    for other in ((7,), (1, 5)):
        yield call(op, T(shape), T(target, "int32"), "mean", weight_tensor=T(other), divisor_tensor=T((1, 1)))
    yield call(op, T(shape), T(target, "int32"))
    yield call(op, T(shape, host=True), T(target, "int32"), "sum")


def likelihood_gradients() -> Iterator[Case]:
    op = "ttnn.moreh_nll_loss_backward"
    for (shape, target), mean in product(CLASSES[:4], (True, False)):
        wanted, out = T(target, "int32"), T(shape)
        yield call(op, wanted, T((1, 1)), mean, input_grad_tensor=out)
        options = {"weight_tensor": T((1, 10)), "divisor_tensor": T((1, 1))}
        yield call(op, wanted, T((1, 1)), mean, input_grad_tensor=out, **options)
        yield call(op, wanted, T((1, 1)), mean)
    shape, wanted = (3, 10, 7, 9), T((3, 7, 9), "int32")
    for dtype, layout in STORABLE:
        yield call(op, T((3, 7, 9), dtype, layout), T((1, 1)), False, input_grad_tensor=T(shape))
        yield call(op, wanted, T((1, 1), dtype, layout), False, input_grad_tensor=T(shape))
        yield call(op, wanted, T((1, 1)), False, input_grad_tensor=T(shape, dtype, layout))
    op = "ttnn.moreh_nll_loss_unreduced_backward"
    for shape, target in CLASSES[:4]:
        wanted, gradient, out = T(target, "int32"), T(target), T(shape)
        yield call(op, wanted, gradient, input_grad_tensor=out)
        yield call(op, wanted, gradient, input_grad_tensor=out, weight_tensor=T((1, 10)), ignore_index=3)
        yield call(op, wanted, gradient)
    shape, wanted, gradient = (3, 10, 7, 9), T((3, 7, 9), "int32"), T((3, 7, 9))
    for dtype, layout in STORABLE:
        yield call(op, T((3, 7, 9), dtype, layout), gradient, input_grad_tensor=T(shape))
        yield call(op, wanted, T((3, 7, 9), dtype, layout), input_grad_tensor=T(shape))
        yield call(op, wanted, gradient, input_grad_tensor=T(shape, dtype, layout))
        yield call(op, wanted, gradient, input_grad_tensor=T(shape), weight_tensor=T((1, 10), dtype, layout))


def adam() -> Iterator[Case]:
    for name in ("moreh_adam", "moreh_adamw"):
        op = f"ttnn.{name}"
        four = [T(PAIR)] * 4
        for largest, wanted in product((True, False, None), (None, T(PAIR))):
            yield call(op, *four, amsgrad=largest, max_exp_avg_sq_in=wanted)
        for shape in SHAPES:
            yield call(op, *[T(shape)] * 4, step=2)
        for (dtype, layout), place in product(STORABLE, range(4)):
            operands = [T(PAIR)] * 4
            operands[place] = T(PAIR, dtype, layout)
            yield call(op, *operands)
        for dtype, layout in STORABLE:
            for name_out in ("param_out", "exp_avg_out", "exp_avg_sq_out", "max_exp_avg_sq_out"):
                yield call(op, *four, **{name_out: T(PAIR, dtype, layout)})
            yield call(op, *four, amsgrad=True, max_exp_avg_sq_in=T(PAIR, dtype, layout))
        for memory in MEMORIES:
            yield call(op, *[T(SQUARE)] * 4, memory_config=M(memory))
        options: dict[str, Any] = {"lr": 0.1, "beta1": 0.5, "beta2": 0.5, "eps": 1e-3, "weight_decay": 0.1, "step": 7}
        yield call(op, *four, **options)
        yield call(op, *four, **dict.fromkeys(options))
        for given in CONFIGS:
            yield call(op, *four, compute_kernel_config=given)
        yield call(op, *four, step=-1)
        yield call(op, *four, lr="x")
        yield call(op, *four[:3])


def sgd() -> Iterator[Case]:
    op = "ttnn.moreh_sgd"
    for momentum, started, nesterov in product((0.0, 0.9), (True, False), (True, False)):
        options = {"momentum": momentum, "momentum_initialized": started, "nesterov": nesterov}
        yield call(op, T(PAIR), T(PAIR), **options)
        yield call(op, T(PAIR), T(PAIR), T(PAIR), weight_decay=0.1, **options)
        yield call(op, T(PAIR), T(PAIR), T(PAIR), T(PAIR), T(PAIR), **options)
    for (dtype, layout), place in product(STORABLE, range(5)):
        operands = [T(PAIR)] * 5
        operands[place] = T(PAIR, dtype, layout)
        yield call(op, *operands, momentum_initialized=False)
    for memory in MEMORIES:
        options = {"momentum": 0.9, "momentum_initialized": False, "param_out_memory_config": M(memory)}
        yield call(op, T(SQUARE), T(SQUARE), **options)
    yield call(op, T(PAIR), T(PAIR))


def clipping() -> Iterator[Case]:
    op = "ttnn.moreh_clip_grad_norm"
    for shape in SHAPES:
        yield call(op, [T(shape)], 1.0)
        yield call(op, [T(shape), T(GRADIENT)], 1.0, 3.0)
    for norm, strict in product((1.0, 2.0, 2.5, -1.0), (True, False)):
        yield call(op, [T(GRADIENT), T((1, 1, 5, 33))], 1.0, norm, strict)
    for other in ((5, 33), (7,), (3, 45, 70)):
        yield call(op, [T(GRADIENT), T(other)], 1.0)
    for dtype, layout in STORABLE:
        yield call(op, [T(GRADIENT, dtype, layout)], 1.0)
        yield call(op, [T(GRADIENT), T(GRADIENT, dtype, layout)], 1.0)
        yield call(op, [T(GRADIENT)], 1.0, total_norm=T((1, 1), dtype, layout))
    for memory in ("L1", "DRAM"):
        yield call(op, [T(SQUARE)], 1.0, memory_config=M(memory))
    for given in CONFIGS:
        yield call(op, [T(GRADIENT)], 1.0, compute_kernel_config=given)
    yield call(op, [T(GRADIENT, host=True)], 1.0)
    yield call(op, T(GRADIENT), 1.0)
    yield call(op, [T(GRADIENT)])


# -- compared with torch -----------------------------------------------------------------------------------------------

NUMERIC_ROWS = tuple(
    Row(
        f"{name} {reduction}",
        lambda a, b, name=name, reduction=reduction: getattr(ttnn, name)(
            a, b, reduction=getattr(ttnn.LossReductionMode, reduction.upper())
        ),
        lambda a, b, loss=loss, reduction=reduction: loss(a, b, reduction=reduction),
        inputs=2,
        ulps={"bfloat16": 3.0, "float32": 2.0**9},
        floor=1.0,
    )
    for name, loss in (("mse_loss", functional.mse_loss), ("l1_loss", functional.l1_loss))
    for reduction in ("none", "sum", "mean")
)
