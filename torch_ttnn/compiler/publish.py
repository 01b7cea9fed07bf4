"""What the options ask to be told or written about each compiled program."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch_ttnn.compiler.dump import graph_folder
from torch_ttnn.compiler.errors import HostOperationWarning
from torch_ttnn.compiler.program import Program
from torch_ttnn.options import TorchTtnnOption
from ttnn_emulator.files import replacing

log = logging.getLogger("torch_ttnn")


def publish(program: Program, number: int, options: TorchTtnnOption) -> None:
    """Log the program, write its report, and have its first call write it as a script."""
    from torch_ttnn.explain import explanation_of

    if options.verbose or log.isEnabledFor(logging.INFO):
        level = logging.WARNING if options.verbose and not log.isEnabledFor(logging.INFO) else logging.INFO
        log.log(level, "%s", told(program, number))
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


SHOWN = 3  # operations that the warning names


def _warn_of_host_operations(program: Program, number: int) -> None:
    """One warning a compile, which names the first operations that stay on the host."""
    nodes = list(program.graph.nodes)
    host = [str(node.target) for node in nodes if "reason" in node.meta]
    if not host:
        return
    on_device = any(node.meta.get("path") not in (None, "ttnn.from_torch", "ttnn.to_torch") for node in nodes)
    where = "stay on the host" if on_device else "stay on the host and nothing runs on the device"
    named = ", ".join(host[:SHOWN]) + (", ..." if len(host) > SHOWN else "")
    warnings.warn(
        f"{len(host)} operation(s) of graph {number} {where}: {named}. torch_ttnn.explain(model, inputs) tells why; "
        "options={'warn': False} silences this.",
        HostOperationWarning,
        stacklevel=2,
    )


def told(program: Program, number: int) -> str:
    """One line: what became of a graph."""
    nodes = list(program.graph.nodes)
    host = [f"{node.target} ({node.meta['reason']})" for node in nodes if "reason" in node.meta]
    device = len([node for node in nodes if node.meta.get("path")])
    line = (
        f"graph {number}: {program.ops_before} operations became {device} calls on an {program.target.name}, "
        f"{len(program.fusions)} fusions, {sum(program.seconds.values()):.2f} s"
    )
    return line + (f"; left to the host: {', '.join(host)}" if host else "")


def _export(program: Program, inputs: Sequence[Any], number: int, options: TorchTtnnOption) -> None:
    from torch_ttnn.export import export_program

    folder = graph_folder(options.export_dir, number)
    export_program(program, inputs, folder, options.export_code or "accuracy", options.total_num_iterations)
