"""A model with the arguments of one call, in all the forms that `explain`, `check` and `export_code` accept.

    explain(model, x, mask=mask)                        as the model is called
    explain(model, (x,), {"mask": mask})                as `torch.export.export` takes them
    explain(model, args=(x,), kwargs={"mask": mask})    the same by name
    explain(model, batch)                               a mapping of keyword arguments, e.g. from a tokenizer
    explain(torch.export.export(model, (x,)))           an exported program, with its example inputs

A single tuple holds all positional arguments. To pass a tuple or a mapping as the only argument, wrap it in a tuple. A
list is an argument, as in a call.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from torch_ttnn.options import TorchTtnnOption


@dataclass(frozen=True)
class ModelCall:
    """A model, its arguments, and the options to compile it with."""

    model: Callable[..., Any]
    args: tuple
    kwargs: dict[str, Any]
    options: TorchTtnnOption

    @classmethod
    def of(
        cls,
        model: Any,
        positional: tuple = (),
        named: Mapping[str, Any] | None = None,
        *,
        args: tuple | None = None,
        kwargs: Mapping[str, Any] | None = None,
        options: Any = None,
        device: Any = None,
    ) -> ModelCall:
        """The call that a user means; `positional` and `named` are the arguments for the model.

        >>> ModelCall.of(abs, (1, 2), {"c": 3}).args
        (1, 2)
        >>> ModelCall.of(abs, ((1, 2), {"c": 3})).kwargs
        {'c': 3}
        """
        keywords: dict[str, Any] = {}
        if args is not None:
            if positional:
                raise TypeError("pass the positional arguments of the model either in order or as args=, not both")
            given = _as_tuple(args)
        else:
            given, keywords = _split(positional)
        for more in (kwargs or {}, named or {}):
            repeated = sorted(set(more) & set(keywords))
            if repeated:
                raise TypeError(f"the argument {repeated[0]!r} of the model is passed twice")
            keywords.update(more)
        if isinstance(model, torch.export.ExportedProgram):
            if not given and not keywords:
                given, keywords = _example_inputs(model)
            model = model.module()
        return cls(model, given, keywords, _options(options, device))


def _as_tuple(args: Any) -> tuple:
    if not isinstance(args, tuple | list):
        raise TypeError(f"args must be a tuple of positional arguments, not {type(args).__name__}")
    return tuple(args)


def _split(positional: tuple) -> tuple[tuple, dict[str, Any]]:
    """Positional and keyword arguments, in any of the accepted forms."""
    if len(positional) == 1 and isinstance(positional[0], Mapping):
        return (), dict(positional[0])
    if positional and type(positional[0]) is tuple:  # a named tuple is an argument of the model
        if len(positional) == 1:
            return positional[0], {}
        if len(positional) == 2 and isinstance(positional[1], Mapping):
            return positional[0], dict(positional[1])
    return positional, {}


def _example_inputs(program: torch.export.ExportedProgram) -> tuple[tuple, dict[str, Any]]:
    if program.example_inputs is None:
        raise TypeError("the exported program has no example inputs; pass arguments to call it with")
    args, kwargs = program.example_inputs
    return tuple(args), dict(kwargs)


def _options(options: Any, device: Any) -> TorchTtnnOption:
    chosen = TorchTtnnOption.of(options)
    return chosen if device is None else dataclasses.replace(chosen, device=device)
