"""Training with torch and on the device: three optimizer steps, gradients compared parameter by parameter.

**The network** is in train mode, with dropout (and similar rates) set to 0: compiled and eager torch draw random
numbers in different orders, so runs with dropout cannot be compared. The row says so.

**The weights.** The zoo's random weights keep the inputs of ReLUs slightly above zero, as in trained networks; else
rounding errors grow from layer to layer (`zoo.initialisation`). In inference the running statistics of batch norms do
this. Training does not use them, so here the biases of batch norms are raised by as many standard deviations. Trained
weights are not changed.

**The loss** is the model's own if it returns one; else the outputs times fixed random numbers, summed and divided by
the square root of their count.

**The steps.** AdamW trains two copies, one with gradients of the device and one with torch's; the row has both losses.
Gradients are compared at the same weights, those of the copy that the device trains: torch computes them there as well,
so that only gradients are compared, not the effect of earlier steps.

**What is compared.** A gradient that is zero in exact arithmetic consists of rounding errors only: that of a bias
before a norm, or of the keys of attention. Gradients are skipped whose root mean square in torch is below `ZERO` of the
largest of all parameters (float32 leaves some 1e-8 to 1e-7 of it). One number has no correlation: parameters with one
value agree (1) or not (0), by `ONE_VALUE_ERROR`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from torch_ttnn.backend import compile
from torch_ttnn.results.measure import Subject, finite, nothing_captured, time_fields, warm_times
from torch_ttnn.results.program_fields import fields_of
from torch_ttnn.results.record import NEAR, Gradient
from torch_ttnn.workloads.agreement import Agreement, agreement, pcc, relative_error
from torch_ttnn.workloads.timing import elapsed
from torch_ttnn.zoo import tensors, trained
from torch_ttnn.zoo.initialisation import LIFT, has_statistics

STEPS = 3
LEARNING_RATE = 1e-4
ZERO = 1e-6  # of the largest gradient
ONE_VALUE_ERROR = 0.05
SHOWN = 10  # worst gradients kept in a row
NO_DROPOUT = "Dropout is off, so that both ways compute the same."
LIFTED = f"Biases of batch norms are raised by {LIFT} deviations."

Inputs = tuple[tuple[Any, ...], Mapping[str, Any]]
Model = Callable[..., Any]


class NotTrainable(ValueError):
    """A model without gradients to compare, or whose training diverges."""


@dataclass
class Pass:
    """One forward and backward pass: outputs, loss, and gradients by parameter name."""

    outputs: list[torch.Tensor]
    loss: float
    gradients: dict[str, torch.Tensor]


@dataclass
class Found:
    """Results of the steps so far."""

    near: Agreement = field(default_factory=Agreement)
    first_seconds: float = 0.0
    fields: dict[str, Any] = field(default_factory=nothing_captured)
    gradients: dict[str, Agreement] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    original_losses: list[float] = field(default_factory=list)


def train(subject: Subject) -> dict[str, Any]:
    """Fields of a training row."""
    model = subject.model.train()
    are_raised = subject.entry.name not in trained.TASKS and raise_biases(model)
    notes = [NO_DROPOUT] if disable_dropout(model) else []
    subject.known["compared"] = " ".join([*notes, LIFTED] if are_raised else notes)
    compiled = compile(model, options=subject.options)
    found = _steps(subject, compiled)
    runs = [lambda inputs: _backward(model, inputs, subject), lambda inputs: _backward(compiled, inputs, subject)]
    times = warm_times(runs, subject)
    return {
        **subject.known,
        **found.fields,
        "first_seconds": found.first_seconds,
        **time_fields(times),
        "pcc": finite(found.near.pcc),
        "relative_error": finite(found.near.relative_error),
        **gradient_fields(found.gradients),
        "torch_pcc": _torch_pcc(subject) if worst(found.gradients) < NEAR else None,
        "losses": tuple(found.losses),
        "original_losses": tuple(found.original_losses),
    }


def _steps(subject: Subject, compiled: Model) -> Found:
    """Three optimizer steps with torch and on the device."""
    found = Found()
    model, theirs = subject.model, copy.deepcopy(subject.model)
    optimizers = [_optimizer(model), _optimizer(theirs)]
    for step in range(STEPS):
        with _kept_buffers(model):  # statistics of batch norms count one pass per step
            wanted = one_pass(model, model, subject)
        got, seconds = _timed_pass(compiled, model, subject)
        if step == 0:
            found.near, found.first_seconds = agreement(got.outputs, wanted.outputs), seconds
            if subject.options.programs:
                found.fields = fields_of(subject.options.programs)
        for name, each in compare(got.gradients, wanted.gradients):
            found.gradients[name] = found.gradients.get(name, Agreement()).and_(each)
        found.losses.append(_checked(got.loss, "on the device", step))
        found.original_losses.append(_checked(one_pass(theirs, theirs, subject).loss, "by torch", step))
        for optimizer in optimizers:
            optimizer.step()
    return found


def _optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=LEARNING_RATE)


def _checked(loss: float, where: str, step: int) -> float:
    if not math.isfinite(loss):
        raise NotTrainable(f"the loss of step {step + 1} {where} is {loss}")
    return loss


# -- one pass ---------------------------------------------------------------------------------------------------------


def one_pass(call: Model, owner: nn.Module, subject: Subject) -> Pass:
    """Gradients of the parameters of `owner`; `call` is that module, compiled or not."""
    owner.zero_grad(set_to_none=True)
    output, loss = _backward(call, subject.inputs(), subject)
    gradients = {name: each.grad for name, each in owner.named_parameters() if each.grad is not None}
    # The next pass allocates new ones, so these need no copy.
    return Pass([each.detach() for each in tensors(output)], loss, gradients)


def _timed_pass(call: Model, owner: nn.Module, subject: Subject) -> tuple[Pass, float]:
    passes: list[Pass] = []
    seconds = elapsed(lambda: passes.append(one_pass(call, owner, subject)))
    return passes[0], seconds


def _backward(call: Model, inputs: Inputs, subject: Subject) -> tuple[Any, float]:
    torch.manual_seed(subject.conditions.seed)  # for operations that are still random
    arguments, keywords = inputs
    output = call(*arguments, **keywords)
    loss = loss_of(output, subject.conditions.seed)
    loss.backward()
    return output, loss.item()


def loss_of(output: Any, seed: int) -> torch.Tensor:
    """The model's own loss, or its outputs times fixed random numbers."""
    own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(own, torch.Tensor) and own.numel() == 1 and own.requires_grad:
        return own.reshape(())
    generator = torch.Generator(device="cpu").manual_seed(seed)
    parts = [each.float() for each in tensors(output) if each.requires_grad]
    if not parts:
        raise NotTrainable("no output of the model is differentiable with respect to its parameters")
    weighted = [part * torch.randn(part.shape, generator=generator, device="cpu") for part in parts]
    return torch.stack([each.sum() / math.sqrt(each.numel()) for each in weighted]).sum()


@contextmanager
def _kept_buffers(model: nn.Module) -> Iterator[None]:
    """Restores the buffers afterwards."""
    before = [(each, each.detach().clone()) for each in model.buffers()]
    yield
    with torch.no_grad():
        for each, value in before:
            each.copy_(value)


# -- the network ------------------------------------------------------------------------------------------------------


def disable_dropout(model: nn.Module) -> bool:
    """Set all dropout rates in modules and their configs to 0; returns whether any was not 0 before."""
    changed = False
    for module in model.modules():
        is_dropout = "drop" in type(module).__name__.lower() or "stochasticdepth" in type(module).__name__.lower()
        changed |= _zero_rates(module, ("p",) if is_dropout else ())
        if hasattr(getattr(module, "config", None), "to_dict"):
            changed |= _zero_rates(module.config, ())
    return changed


def _zero_rates(holder: Any, more: tuple[str, ...]) -> bool:
    rates = [
        name
        for name, value in vars(holder).items()
        if ("drop" in name or name in more) and isinstance(value, float) and value > 0
    ]
    for name in rates:
        setattr(holder, name, 0.0)
    return bool(rates)


def raise_biases(model: nn.Module) -> bool:
    """Raise the biases of batch norms, as their running statistics do in inference; returns whether there are any."""
    found = False
    with torch.no_grad():
        for module in model.modules():
            bias, weight = getattr(module, "bias", None), getattr(module, "weight", None)
            if has_statistics(module) and isinstance(bias, nn.Parameter) and isinstance(weight, nn.Parameter):
                bias.add_(LIFT * weight)
                found = True
    return found


# -- gradients --------------------------------------------------------------------------------------------------------


def compare(got: Mapping[str, torch.Tensor], want: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, Agreement]]:
    """Compare gradients of the device with torch's, except those that are zero up to rounding."""
    largest = max((_size(each) for each in want.values()), default=0.0)
    if largest == 0:
        raise NotTrainable("all gradients are zero: there is nothing to compare")
    for name, theirs in want.items():
        if _size(theirs) < ZERO * largest:
            continue
        mine = got.get(name)
        yield name, Agreement(0.0, 1.0) if mine is None else _agreement(mine, theirs)


def _size(gradient: torch.Tensor) -> float:
    return float(gradient.double().square().mean().sqrt()) if gradient.numel() else 0.0


def _agreement(mine: torch.Tensor, theirs: torch.Tensor) -> Agreement:
    error = relative_error(mine, theirs)
    if theirs.numel() == 1:
        return Agreement(1.0 if error <= ONE_VALUE_ERROR else 0.0, error)
    return Agreement(pcc(mine, theirs), error)


def worst(gradients: Mapping[str, Agreement]) -> float:
    return min(each.pcc for each in gradients.values())


def _torch_pcc(subject: Subject) -> float | None:
    """PCC of torch's worst gradient under `torch.autocast` in bfloat16, against its float32 gradients."""
    model = subject.model
    with _kept_buffers(model):
        want = one_pass(model, model, subject)
    try:
        with _kept_buffers(model), torch.autocast("cpu", torch.bfloat16):
            got = one_pass(model, model, subject)
    except RuntimeError:  # some models mix dtypes in ways that autocast rejects
        return None
    return finite(worst(dict(compare(got.gradients, want.gradients))))


def gradient_fields(gradients: Mapping[str, Agreement]) -> dict[str, Any]:
    """PCC of the worst parameter, and the ten worst parameters by name."""
    ordered = sorted(gradients, key=lambda name: (gradients[name].pcc, name))
    shown = [
        Gradient(name, gradients[name].pcc, finite(gradients[name].relative_error) or 1.0) for name in ordered[:SHOWN]
    ]
    return {"gradient_pcc": gradients[ordered[0]].pcc, "gradients": tuple(shown)}
