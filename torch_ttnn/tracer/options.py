"""Options of the tracer: a dataclass; users may also pass a dict, or nothing."""

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

    model_name      used in file names; by default the class of the model, if it can be determined
    out_folder      the folder `raw` with the records is created in it
    out_prefix      prefix of the model's name, to keep runs of one model apart
    trace_orig      record the graphs that were captured
    trace_modi      record what the compiler made of them in the folder `raw_modified`; only the `ttnn` backend can
                    (its option `tracer_option`)
    decompositions  "none" records what eager torch runs; "core" decomposes operations into core ATen first
    facts           also compute FLOPs and bytes
    lowering        also ask the compiler where each operation runs: device, host (and why), or decomposed
    device          the board for these queries: "emulator", "emulator:p150" ...; nothing runs on it
    gen_graphviz    also draw the graphs, in the folder `graphviz`: `.dot` files, and `.svg` where graphviz is installed
    verbose         log every graph at WARNING in place of INFO (logger `torch_ttnn`)

    Answers of the compiler are cached here, so graphs that are traced with one option object share them.
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
        """Options from what the user passed.

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
        """The object that answers queries about lowerings, if `lowering` is set."""
        from torch_ttnn.tracer.lowered import Lowerings  # it imports the compiler, which imports this module

        if self.lowering and self._lowerings is None:
            self._lowerings = Lowerings(self.device)
        return self._lowerings
