"""Logs, warnings, reports and scripts about each compiled program, as set in the options."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch.fx

from torch_ttnn.compiler.errors import GraphBreakWarning, HostOperationWarning
from torch_ttnn.compiler.frontend.graph_breaks import break_of, last_recompile
from torch_ttnn.compiler.ir.dump import graph_folder
from torch_ttnn.compiler.ir.metadata import PATH, REASON
from torch_ttnn.compiler.ir.nodes import target_name
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.options import TorchTtnnOption
from ttnn_emulator.atomic_files import replacing

log = logging.getLogger("torch_ttnn")


def announce(program: Program, number: int, options: TorchTtnnOption) -> None:
    """Log the program, write its report, and export it as a script at its first call."""
    from torch_ttnn.explain import explanation_of

    if options.verbose or log.isEnabledFor(logging.INFO):
        level = logging.WARNING if options.verbose and not log.isEnabledFor(logging.INFO) else logging.INFO
        log.log(level, "%s", summary(program, number))
    if options.warn:
        _warn_of_host_operations(program, number)
    if options.metrics_path:
        folder = Path(options.metrics_path)
        folder.mkdir(parents=True, exist_ok=True)
        report = explanation_of([(f"graph {number}", program)], numerics=options.numerics).to_json()
        with replacing(folder / f"graph_{number}.json") as temporary:
            temporary.write_text(json.dumps(report, indent=1))
    if options.export_code:
        program.before_first_call = lambda inputs: _export(program, inputs, number, options)


SHOWN = 3  # operations named in the warning
SILENCED = "options={'warn': False} silences this."


def _warn_of_host_operations(program: Program, number: int) -> None:
    """Warn once per compile, naming the first operations that stay on the host."""
    nodes = list(program.graph.nodes)
    host = [target_name(node) for node in nodes if REASON.on(node)]
    on_device = any(PATH.get(node) not in (None, "ttnn.from_torch", "ttnn.to_torch") for node in nodes)
    if not host and (on_device or not program.ops_before):
        return
    if host:
        where = "stay on the host" if on_device else "stay on the host and nothing runs on the device"
        named = ", ".join(host[:SHOWN]) + (", ..." if len(host) > SHOWN else "")
        message = f"{len(host)} operation(s) of graph {number} {where}: {named}."
    else:
        message = f"nothing of graph {number} runs on the device: it consists of views and copies on the host."
    advice = f"torch_ttnn.explain(model, inputs) shows why; {SILENCED}"
    warnings.warn(f"{message} {advice}", HostOperationWarning, stacklevel=2)


def warn_of_breaks(graph_module: torch.fx.GraphModule) -> None:
    """Warn about parts of a model that do not reach the backend, as far as this graph shows."""
    found = break_of(graph_module)
    if found is not None:
        message = f"{found}. The code after it is captured as another graph, or runs as Python."
        warnings.warn(
            f"{message} torch_ttnn.explain(model, inputs) lists all breaks; {SILENCED}", GraphBreakWarning, stacklevel=2
        )
    limit = last_recompile()
    if limit is not None:
        warnings.warn(
            f"a function of the model was compiled {limit} times, which is torch._dynamo.config.recompile_limit: calls "
            f"that need another graph run on the CPU. TORCH_LOGS=recompiles shows why; {SILENCED}",
            GraphBreakWarning,
            stacklevel=2,
        )


def summary(program: Program, number: int) -> str:
    """One line about the compilation of a graph."""
    nodes = list(program.graph.nodes)
    host = [f"{target_name(node)} ({REASON[node]})" for node in nodes if REASON.on(node)]
    device = len([node for node in nodes if PATH.get(node)])
    line = (
        f"graph {number}: {program.ops_before} operations became {device} calls on an {program.target.name}, "
        f"{len(program.fusions)} fusions, {sum(program.seconds.values()):.2f} s"
    )
    return line + (f"; on the host: {', '.join(host)}" if host else "")


def _export(program: Program, inputs: Sequence[Any], number: int, options: TorchTtnnOption) -> None:
    from torch_ttnn.export import export_program

    folder = graph_folder(options.export_dir, number)
    export_program(program, inputs, folder, options.export_code or "accuracy", options.total_num_iterations)
