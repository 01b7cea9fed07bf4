"""Options of the compiler: a dataclass; users may also pass a dict, or nothing."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.fx

from torch_ttnn.system.option_objects import options_of

if TYPE_CHECKING:
    from torch_ttnn.compiler.runtime.program import Program

PRECISIONS = ("bfloat16", "float32")
WEIGHTS = ("same", "bfloat8_b", "bfloat4_b")
NUMERICS = ("fast", "auto", "exact")
EXPORTS = (None, "accuracy", "profiling")
# Known differences between the chip's arithmetic and torch's; operations that depend on one stay on the host unless
# it is accepted.
DIFFERENCES = ("nan", "integer_division", "ties")


def _debug_stages() -> tuple[str, ...]:
    return tuple(name for name in os.environ.get("TORCH_TTNN_DEBUG", "").split(",") if name)


@dataclass
class TorchTtnnOption:
    """Options of the `ttnn` backend.

    device          an open device; or "emulator", "emulator:n300", "ttnn", "ttnn:0"; by default
                    TORCH_TTNN_DEVICE, else a card if `ttnn` is installed and finds one, else the emulator
    precision       dtype of float32 (and float16) tensors on the device: "bfloat16" or "float32"
    weights         the format of matmul weights: "same" as the activations, "bfloat8_b" or "bfloat4_b"
    accept          differences between the chip's arithmetic and torch's to accept: any of "nan",
                    "integer_division", "ties"
    numerics        accuracy of the emulator: "fast" rounds between operations like the chip and computes within them
                    in float32; "exact" is bit-exact; "auto" is exact where that is fast
    fuse            False disables fusions
    host_ops        operators that stay on the host: names such as "aten.gelu" (all overloads) or "aten.gelu.default",
                    or the operators themselves
    trace           run warm calls as one captured trace; by default on the emulator only
    max_programs    number of programs kept per graph with changing shapes
    cache_dir       folder of compiled programs; by default TORCH_TTNN_CACHE_DIR, else the user's cache; "" is none
    debug           stages whose graphs are written before and after, e.g. ("lower", "simplify"), or ("all",)
    debug_dir       where they are written
    gen_graphviz    also draw those graphs (needs graphviz); without `debug`, those of the last stage
    export_code     "accuracy" or "profiling": write the program of every graph as a script into `export_dir`
    verbose         log a line per compile at WARNING in place of INFO (logger `torch_ttnn`)
    warn            False silences the warning about operations that stay on the host
    bypass_compile  run the captured graphs with torch
    metrics_path    write a JSON report of every compiled graph into this folder
    load_params_once  False uploads weights on every call
    tracer_option   records of the operations of every graph: a `torch_ttnn.tracer.TracerOption` or a dict of its
                    fields. `trace_orig` writes the captured graph to the folder `raw`, `trace_modi` its program to
                    `raw_modified`, whether compiled or loaded from disk

    The rest are options of the older compiler: run_mem_analysis and run_eviction_opt have no effect, because memory is
    always analysed and values are always freed at their last use; total_num_iterations is the number of iterations of
    an exported profiling script; data_parallel and native_integration must be False.

    The object also holds what was compiled with it: `programs` are those that are kept, `compiled` is their total
    number. As in the older compiler, `_out_fx_graphs` are the graphs of the programs.
    """

    device: Any = None
    precision: str = "bfloat16"
    weights: str = "same"
    accept: tuple[str, ...] = ()
    numerics: str = "fast"
    fuse: bool = True
    host_ops: tuple[str, ...] = ()
    trace: bool | None = None
    max_programs: int = 16
    cache_dir: str | None = None
    debug: tuple[str, ...] = field(default_factory=_debug_stages)
    debug_dir: str | Path = "torch_ttnn_debug"
    gen_graphviz: bool = False
    run_mem_analysis: bool = False
    run_eviction_opt: bool = False
    verbose: bool = False
    warn: bool = True
    metrics_path: str | Path = ""
    tracer_option: Any = None
    bypass_compile: bool = False
    export_code: str | None = None
    export_dir: str | Path = "torch_ttnn_export"
    total_num_iterations: int = 1
    data_parallel: bool = False
    load_params_once: bool = True
    native_integration: bool = False
    programs: list[Program] = field(default_factory=list, init=False, repr=False)
    compiled: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self.accept = _names("accept", self.accept)
        self.host_ops = _names("host_ops", _operator_names(self.host_ops))
        self.debug = _names("debug", ("all" if self.debug else ()) if isinstance(self.debug, bool) else self.debug)
        _one_of("precision", self.precision, PRECISIONS)
        _one_of("weights", self.weights, WEIGHTS)
        _one_of("numerics", self.numerics, NUMERICS)
        _one_of("export_code", self.export_code, EXPORTS)
        for name in self.accept:
            _one_of("accept", name, DIFFERENCES)
        if not isinstance(self.max_programs, int) or self.max_programs < 1:
            raise ValueError(f"max_programs must be a positive number, not {self.max_programs!r}")
        if self.tracer_option is not None:
            from torch_ttnn.tracer.options import TracerOption  # it imports the compiler, which imports this module

            self.tracer_option = TracerOption.of(self.tracer_option)
        for name in ("data_parallel", "native_integration"):
            if getattr(self, name):
                raise NotImplementedError(f"{name}=True is not supported; leave it False")

    @classmethod
    def of(cls, given: TorchTtnnOption | Mapping[str, Any] | None) -> TorchTtnnOption:
        """Options from what the user passed.

        >>> TorchTtnnOption.of({"precision": "float32"}).precision
        'float32'
        """
        return options_of(cls, given)

    @property
    def _out_fx_graphs(self) -> list[torch.fx.Graph]:
        """The graphs of the programs; they call functions of the device's library.

        All tensor nodes have a fake tensor in `meta["val"]`, with the shape on the device for device tensors.
        """
        from torch_ttnn.compiler.ir.device_vals import with_vals

        return [with_vals(program.target.border.bound(program.graph)) for program in self.programs]

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchTtnnOption:
        """Copy the options and share the open device; compiled programs are not copied."""
        return dataclasses.replace(self)

    def keep(self, program: Program) -> None:
        """Add a program that was compiled with these options."""
        self.programs.append(program)
        self.compiled += 1

    def forget(self, program: Program) -> None:
        """Remove a program that was evicted."""
        self.programs.remove(program)


def _names(option: str, given: Any) -> tuple[str, ...]:
    """One name or several."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{option} takes a name or a sequence of names, not {given!r}")
    return tuple(names)


def _operator_names(given: Any) -> Any:
    """Replace operators of torch by their names; leave anything else as it is."""
    operators = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
    several = [given] if isinstance(given, operators) else given
    if not isinstance(several, Iterable) or isinstance(several, str):
        return given
    return tuple([str(each) if isinstance(each, operators) else each for each in several])


def _one_of(name: str, value: Any, choices: tuple) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not supported; choose one of {', '.join(map(repr, choices))}")
