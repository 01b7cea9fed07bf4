"""What a user can choose when tracing: one dataclass, also given as a dict, or not at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_ttnn.tracer.lowered import Lowerings

DECOMPOSITIONS = ("none", "core")
RAW, RAW_MODIFIED, PICTURES = "raw", "raw_modified", "graphviz"  # folders within `out_folder`


@dataclass
class TracerOption:
    """Options of the tracer.

    model_name      what the files are called after; empty takes the class of the model, where that can be known
    out_folder      where the folder `raw` with the records is made
    out_prefix      stands before the model's name, to keep runs of one model apart
    trace_orig      record the graphs that were captured
    trace_modi      record what the compiler made of them in the folder `raw_modified`; only the `ttnn` backend can
                    (its option `tracer_option`)
    decompositions  "none" records what eager torch runs; "core" takes operations apart into core ATen first
    facts           also work out FLOPs and bytes
    lowering        also ask the compiler what becomes of each operation: device, host (and why), or taken apart
    device          the board that is asked for: "emulator", "emulator:p150" ...; nothing runs on it
    gen_graphviz    also draw the graphs, in the folder `graphviz`: `.dot` files, and `.svg` where graphviz is installed
    verbose         log every graph so that it is seen (else at INFO, by the logger `torch_ttnn`)

    What was asked of the compiler is remembered here, so graphs that are traced with one option object ask once.
    """

    model_name: str = ""
    out_folder: str | Path = "stat"
    out_prefix: str = ""
    trace_orig: bool = True
    trace_modi: bool = False
    decompositions: str = "none"
    facts: bool = True
    lowering: bool = True
    device: Any = "emulator"
    gen_graphviz: bool = False
    verbose: bool = False
    _lowerings: Lowerings | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("model_name", "out_prefix"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} takes a text, not {getattr(self, name)!r}")
        if not isinstance(self.out_folder, str | Path):
            raise TypeError(f"out_folder takes a path, not {self.out_folder!r}")
        if self.decompositions not in DECOMPOSITIONS:
            offered = ", ".join(map(repr, DECOMPOSITIONS))
            raise ValueError(f"decompositions={self.decompositions!r} is not offered; choose one of {offered}")

    @classmethod
    def of(cls, given: TracerOption | Mapping[str, Any] | None) -> TracerOption:
        """The options themselves, from whatever the user gave.

        >>> TracerOption.of({"model_name": "resnet18"}).out_folder
        'stat'
        """
        if given is None:
            return cls()
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise TypeError(f"tracer options must be a TracerOption, a dict or None, not {type(given).__name__}")
        known = [each.name for each in dataclasses.fields(cls) if each.init]
        unknown = sorted(map(repr, set(given) - set(known)))
        if unknown:
            raise TypeError(f"unknown tracer option {', '.join(unknown)}; known are {', '.join(known)}")
        return cls(**given)

    @property
    def lowerings(self) -> Lowerings | None:
        """Whom to ask what becomes of an operation, if that is wanted."""
        from torch_ttnn.tracer.lowered import Lowerings  # it needs the compiler, which knows these options

        if self.lowering and self._lowerings is None:
            self._lowerings = Lowerings(self.device)
        return self._lowerings
