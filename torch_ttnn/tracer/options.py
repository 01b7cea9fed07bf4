"""Options of the tracer: a dataclass; users may also pass a dict, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_ttnn.system.option_objects import options_of

if TYPE_CHECKING:
    from torch_ttnn.tracer.lowered import Lowerings

DECOMPOSITIONS = ("none", "core")
RAW, RAW_MODIFIED, PICTURES = "raw", "raw_modified", "graphviz"  # folders within `out_folder`


@dataclass
class TracerOption:
    """Options of the tracer.

    model_name      used in file names; by default the class of the model, if it can be determined
    out_folder      the folder `raw` with the records is created in it
    out_prefix      prefix of the model's name, to distinguish runs of one model
    trace_orig      record the graphs that were captured
    trace_modi      record the compiled programs in the folder `raw_modified`; `ttnn` backend only
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
                raise TypeError(f"{name} must be a string, not {getattr(self, name)!r}")
        if not isinstance(self.out_folder, str | Path):
            raise TypeError(f"out_folder must be a path, not {self.out_folder!r}")
        if self.decompositions not in DECOMPOSITIONS:
            offered = ", ".join(map(repr, DECOMPOSITIONS))
            raise ValueError(f"decompositions={self.decompositions!r} is not supported; choose one of {offered}")

    @classmethod
    def of(cls, given: TracerOption | Mapping[str, Any] | None) -> TracerOption:
        """Options from what the user passed.

        >>> TracerOption.of({"model_name": "resnet18"}).out_folder
        'stat'
        """
        return options_of(cls, given, "tracer option")

    @property
    def lowerings(self) -> Lowerings | None:
        """The object that answers queries about lowerings, if `lowering` is set."""
        from torch_ttnn.tracer.lowered import Lowerings  # it imports the compiler, which imports this module

        if self.lowering and self._lowerings is None:
            self._lowerings = Lowerings(self.device)
        return self._lowerings
