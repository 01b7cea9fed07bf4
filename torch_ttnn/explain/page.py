"""A report as one self-contained HTML page."""

from __future__ import annotations

from typing import Any

from torch_ttnn.explain import predicted
from torch_ttnn.explain.data import NUMERICS, ProgramReport, Report, bytes_text
from torch_ttnn.explain.graph_layout import place
from torch_ttnn.explain.text import fit_text
from torch_ttnn.pages.assembly import assemble, card, embedded, safe
from torch_ttnn.perf.program_time import Mode, ModelTime
from torch_ttnn.perf.time_text import duration_text, rate_text


def render(report: Report) -> str:
    """The page as text."""
    data = {
        "programs": [_program(program) for program in report.programs],
        "missed": [[each.kind, each.reason, each.source] for each in report.missed],
        "predicted": predicted.page_data(report.times, report.board),
    }
    return assemble(
        "torch_ttnn.explain.files",
        "page.html",
        ["page.css"],
        ["page.js"],
        generator="explain",
        title="torch_ttnn: how the model was compiled",
        summary=_summary(report),
        data=embedded(data),
    )


def _summary(report: Report) -> str:
    memory = report.memory
    seconds = sum(report.compile_seconds.values())
    stages = ", ".join(f"{name} {spent:.2f} s" for name, spent in report.compile_seconds.items())
    host = sum(len(program.host_ops) for program in report.programs)
    cards = [
        ("device", sum(sum(program.device_ops.values()) for program in report.programs), "device operations", ""),
        ("host" if host else "good", host, "host operations", ""),
        ("move", sum(len(program.moves) for program in report.programs), "moves", ""),
        *_extra_cards(report),
        *_time_card(report),
        ("", bytes_text(memory.dram_peak), "DRAM at the peak", f"weights {bytes_text(memory.weights)}"),
        ("", bytes_text(memory.l1_peak), "L1 per core at the peak", ""),
        ("", f"{seconds:.1f} s", "to compile", stages),
    ]
    verdicts = [(fit, fit_text(fit, report.times.get(fit.board))) for fit in report.fits]
    boards = [f'<li class="{"fits" if fit.fits else "lacks"}">{safe(text)}</li>' for fit, text in verdicts]
    empty = [program.nothing_on_device for program in report.programs if program.nothing_on_device]
    notes = [f'<p class="note">{safe(each)}</p>' for each in (*empty, *report.notes, *memory.problems)]
    mode = [f'<p class="quiet">{safe(NUMERICS[report.numerics])}</p>'] if report.numerics else []
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return "\n".join(
        [
            f'<p class="quiet">{len(report.programs)} program(s) for the {safe(report.target)}; {safe(versions)}</p>',
            *mode,
            '<div class="cards">',
            *[card(*each) for each in cards],
            "</div>",
            *notes,
            f'<ul class="boards">{"".join(boards)}</ul>',
        ]
    )


def _extra_cards(report: Report) -> list[tuple[str, Any, str, str]]:
    """Cards that most models do not need."""
    border = [each for program in report.programs for each in program.border_ops]
    cards = []
    if border:
        copied = f"{bytes_text(sum(each.bytes for each in border))} copied"
        cards.append(("move", len(border), "views and copies by the host", copied))
    if report.missed:
        cards.append(
            (
                "host",
                len(report.missed),
                "left to Python by torch.compile",
                "graph breaks, skipped functions",
            )
        )
    return cards


def _time_card(report: Report) -> list[tuple[str, Any, str, str]]:
    """A traced call on the own board."""
    time = report.times.get(report.board)
    if not isinstance(time, ModelTime) or not time.programs:
        return []
    end = time.end_to_end(Mode.TRACED)
    detail = f"{rate_text(end.per_second)} traced; {duration_text(time.device_ns)} of it on the device"
    return [("", duration_text(end.latency_ns), f"predicted on the {report.board}", detail)]


def _program(program: ProgramReport) -> dict[str, Any]:
    number = {node.name: index for index, node in enumerate(program.nodes)}
    calls = predicted.calls_of(program, program.board)
    times = {node.name: predicted.node_data(calls.get(node.name)) for node in program.nodes}
    return {
        "name": program.name,
        "before": program.ops_before,
        "nodes": [
            {
                "name": node.name,
                "op": node.op,
                "kind": node.kind,
                "x": round(x),
                "y": round(y),
                "in": [number[name] for name in node.inputs if name in number],
                "weights": list(node.weights),
                "spec": node.spec,
                "module": node.module,
                "source": node.source,
                "note": node.note,
                "ns": times[node.name][0],
                "time": times[node.name][1],
            }
            for node, (x, y) in zip(program.nodes, place(program.nodes))
        ],
        "steps": [
            [number[step.node], step.dram, step.dram_high, step.l1, step.l1_high]
            for step in program.memory.steps
            if step.node in number
        ],
        "weights": program.memory.weights,
        "counts": [[name, count] for name, count in program.device_ops.items()],
        "host": [[each.op, each.reason, each.source] for each in program.host_ops],
        "moves": [[each.kind, each.bytes, each.reason, each.source] for each in program.moves],
        "border": [[each.op, each.bytes, each.reason, each.source] for each in program.border_ops],
        "fusions": [[each.name, ", ".join(each.replaced), each.source] for each in program.fusions],
        "predicted": predicted.page_data(predicted.times_of(program), program.board),
        "code": program.code,
    }
