"""`python -m ttnn_emulator.conformance`: ask the real library, record its answers, compare the emulator with them."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from ttnn_emulator.api.recorded import ttnn_version
from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.conformance import case as words
from ttnn_emulator.conformance import environment, mock_card, recorded, test_data
from ttnn_emulator.conformance.case_tables import board_of, cases_of, families
from ttnn_emulator.conformance.compare import EmulatedTtnn, Score, agree, score
from ttnn_emulator.conformance.real import RealTtnn

console = Console()


def record(arguments: argparse.Namespace) -> int:
    """Run every case of the given families on the real library and record its answers."""
    with Progress(console=console) as progress:
        for family in arguments.families or families():
            board = board_of(family)
            cases = _distinct(cases_of(family))
            bar = progress.add_task(family, total=len(cases))
            entries = []
            with RealTtnn(board=board) as real:
                for case in cases:
                    answer = real.ask(case)
                    if answer.pop("input", False):
                        progress.console.print(f"[yellow]left out[/] {words.case_id(case)}: {answer['error']}")
                    else:
                        entries.append((case, answer))
                    progress.advance(bar)
                recorded.write(family, {"ttnn": real.version, "board": board}, entries)
    return 0


def _distinct(cases: Any) -> list[words.Case]:
    return list({words.case_id(case): case for case in cases}.values())


def compare(arguments: argparse.Namespace) -> int:
    """Compare the emulator with recorded or new answers."""
    if arguments.fresh:
        record(arguments)
    total = Score()
    for family in arguments.families or recorded.recorded_families():
        total.merge(score(family, arguments.op))
    print_score(total, show=arguments.show)
    return 0 if total.share >= arguments.least else 1


def print_score(total: Score, *, show: int) -> None:
    table = Table("operation", "cases", "refused by ttnn", "agree", title="Conformance with the real ttnn")
    for op in sorted(total.cases):
        share = total.agreed[op] / total.cases[op]
        colour = "green" if share == 1 else "yellow" if share >= 0.95 else "red"
        table.add_row(op, str(total.cases[op]), str(total.refused[op]), f"[{colour}]{share:.1%}[/]")
    console.print(table)
    for difference in total.differences[:show]:
        console.print(f"[bold]{difference.kind}[/] ", end="")
        console.print(str(difference), markup=False, highlight=False)
    console.print(
        f"{len(total.cases)} operations, {total.total} cases, {total.refused_share:.1%} refused by ttnn: "
        f"the emulator agrees on {total.share:.2%}"
    )


def ask(arguments: argparse.Namespace) -> int:
    """Evaluate one call on the real library and on the emulator, side by side."""
    scope = {name: getattr(words, name) for name in dir(words) if not name.startswith("_")}
    scope["ttnn"] = _CallBuilder("ttnn")
    case = eval(arguments.call, scope)
    if arguments.usage:
        case["usage"] = True
    with RealTtnn() as real, EmulatedTtnn() as emulated:
        theirs, ours = real.ask(case), emulated.ask(case)
    console.print("real    ", theirs)
    console.print("emulated", ours)
    return 0 if agree(theirs, ours) else 1


def golden(arguments: argparse.Namespace) -> int:
    """Compare the emulator with the chip's own kernels, bit by bit."""
    from ttnn_emulator.conformance import golden as vectors

    results = vectors.judge_all(only=arguments.only)
    failed = [result for result in results if not result.passes]
    for result in results if arguments.all else failed:
        console.print(("[green]pass[/] " if result.passes else "[red]FAIL[/] "), end="")
        console.print(str(result), markup=False, highlight=False)
    table = Table("kind", "vectors", "bit-exact", "pass", title="Golden vectors")
    for kind in (vectors.MOVED, vectors.ELEMENTWISE, vectors.ACCUMULATED):
        of_kind = [result for result in results if result.vector.kind == kind]
        exact = sum(result.exact == 1.0 and not result.error for result in of_kind)
        table.add_row(kind, str(len(of_kind)), str(exact), str(sum(result.passes for result in of_kind)))
    console.print(table)
    return 1 if failed else 0


def report(arguments: argparse.Namespace) -> int:
    """Write docs/conformance.md from the recorded answers and the golden vectors."""
    from ttnn_emulator.conformance import golden as vectors
    from ttnn_emulator.conformance.report import page, releases_in

    scores = {family: score(family) for family in recorded.recorded_families()}
    releases = releases_in(arguments.file.read_text(encoding="utf-8")) if arguments.file.exists() else ""
    text = page(scores, vectors.judge_all(), releases)
    with replacing(arguments.file) as temporary:
        temporary.write_text(text, encoding="utf-8")
    console.print(f"wrote {arguments.file}")
    return 0


class _CallBuilder:
    """`ttnn.add(T([2, 3]), 1)` → the case of that call."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> _CallBuilder:
        return _CallBuilder(f"{self._path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> words.Case:
        return words.call(self._path, *args, **kwargs)


def api(arguments: argparse.Namespace) -> int:
    """Record the library's public API."""
    target = pathlib.Path(__file__).parents[1] / "api" / "ttnn_api.json"
    with RealTtnn() as real:
        text = real.record_api()
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
    console.print(f"wrote {target}")
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Run Python with the real library, on a mock card or on the simulator that TT_METAL_SIMULATOR names."""
    python = environment.ttnn_python(ttnn_version(), arguments.install)
    mock = {}
    if not os.environ.get(mock_card.SIMULATOR_VARIABLE):
        folder = environment.cache_folder() / f"mock-{ttnn_version()}-{arguments.board}"
        mock = mock_card.prepare(folder, environment.package_folder(python), arguments.board)
    here = {"PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))}
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    return subprocess.run([python, *command], env={**os.environ, **mock, **here}).returncode


def tests(arguments: argparse.Namespace) -> int:
    """Run the unit tests of a tt-metal checkout on the emulator unchanged, some cases per file."""
    from ttnn_emulator.conformance import unit_tests

    checkout = arguments.checkout.resolve()
    absent = [path for path in (checkout, *[checkout / each for each in arguments.files]) if not path.exists()]
    files = [] if absent else unit_tests.test_files(checkout, arguments.files)
    if not files:
        problem = f"there is no {absent[0]}" if absent else f"there are no tests in {checkout / unit_tests.UNIT_TESTS}"
        console.print(f"{problem}; pass a checkout of tt-metal and files or folders in it", highlight=False)
        return 2
    total = unit_tests.Summary()
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=len(files))
        running = unit_tests.run_files(
            checkout,
            files,
            draw=arguments.draw,
            seed=arguments.seed,
            timeout=arguments.timeout,
            processes=arguments.jobs,
        )
        for file, endings in running:
            progress.update(bar, description=file)
            total.endings += endings
            for ending in endings:
                if ending.outcome == "failed":
                    last = [line for line in ending.reason.splitlines() if line.startswith("E ")] or [ending.reason]
                    console.print(f"[red]failed[/] {escape(ending.case)}", highlight=False, soft_wrap=True)
                    console.print(f"    {last[-1][-300:]}", markup=False, highlight=False, soft_wrap=True)
            progress.advance(bar)
    print_test_summary(total)
    if arguments.output:
        document = [vars(ending) for ending in total.endings]
        with replacing(arguments.output) as temporary:
            temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return 0 if total.share >= arguments.least else 1


def print_test_summary(total: Any) -> None:
    table = Table("folder", "passed", "failed", "skipped", "out of scope", "pass", title="tt-metal's tests")
    outcomes = ("passed", "failed", "skipped", "out of scope")
    for folder, summary in sorted(total.by_folder().items()):
        table.add_row(
            folder.removeprefix("tests/ttnn/"), *[str(summary.count(each)) for each in outcomes], f"{summary.share:.1%}"
        )
    table.add_row("all", *[str(total.count(each)) for each in outcomes], f"{total.share:.1%}")
    console.print(table)
    for reason, number in total.reasons_out_of_scope.most_common():
        console.print(f"out of scope: {reason}: {number}", highlight=False)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ttnn_emulator.conformance", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")

    each = commands.add_parser("record", help=record.__doc__, description=record.__doc__)
    each.add_argument("families", nargs="*", help="case tables; all by default")
    each.set_defaults(run=record)

    each = commands.add_parser("compare", help=compare.__doc__, description=compare.__doc__)
    each.add_argument("families", nargs="*", help="case tables; all by default")
    each.add_argument("--fresh", action="store_true", help="record new answers of the real library first")
    each.add_argument("--op", default="", help="only this operation, e.g. ttnn.add")
    each.add_argument("--show", type=int, default=20, help="how many differences to print")
    each.add_argument("--least", type=float, default=0.99, help="share of agreement below which the exit code is 1")
    each.set_defaults(run=compare)

    each = commands.add_parser("ask", help=ask.__doc__, description=ask.__doc__)
    each.add_argument("call", help="e.g. 'ttnn.softmax(T([2, 33], \"float32\"), dim=-1)'")
    each.add_argument("--usage", action="store_true", help="also print the L1 use of the call per core")
    each.set_defaults(run=ask)

    each = commands.add_parser("golden", help=golden.__doc__, description=golden.__doc__)
    each.add_argument("only", nargs="?", default="", help="part of a vector's name, or an operation")
    each.add_argument("--all", action="store_true", help="print every vector, not only those that fail")
    each.set_defaults(run=golden)

    each = commands.add_parser("report", help=report.__doc__, description=report.__doc__)
    each.add_argument("file", nargs="?", type=pathlib.Path, default=pathlib.Path("docs/conformance.md"))
    each.set_defaults(run=report)

    each = commands.add_parser("api", help=api.__doc__, description=api.__doc__)
    each.set_defaults(run=api)

    each = commands.add_parser("run", help=run.__doc__, description=run.__doc__)
    each.add_argument("--board", choices=mock_card.CLUSTERS, default="n150", help="the mock card")
    each.add_argument("--install", action="append", default=[], metavar="REQUIREMENT", help="packages to install, too")
    each.add_argument("command", nargs=argparse.REMAINDER, help="a script with its arguments, or -- -m and a module")
    each.set_defaults(run=run)

    each = commands.add_parser("tests", help=tests.__doc__, description=tests.__doc__)
    each.add_argument("checkout", type=pathlib.Path, help="a checkout of tt-metal")
    each.add_argument("files", nargs="*", help="files or folders in it; tests/ttnn/unit_tests by default")
    each.add_argument("--draw", type=int, default=8, metavar="N", help="cases per file; 0: all of them (default: 8)")
    each.add_argument("--seed", type=int, default=0, help="seed of the choice of cases")
    each.add_argument("--jobs", "-j", type=int, default=1, help="parallel processes")
    each.add_argument("--timeout", type=float, default=900, help="time limit per file in seconds")
    each.add_argument("--least", type=float, default=0.97, help="share of passes below which the exit code is 1")
    each.add_argument("--output", type=pathlib.Path, help="write the outcome of every case to this JSON file")
    each.set_defaults(run=tests)

    for name in ("record", "compare", "golden", "report"):
        commands.choices[name].add_argument(
            "--data",
            type=pathlib.Path,
            metavar="FOLDER",
            help="case tables, answers, golden vectors (default: tests/conformance)",
        )
    arguments = parser.parse_args(argv)
    if getattr(arguments, "data", None):
        test_data.use(arguments.data)
    try:
        if getattr(arguments, "families", None) and (unknown := set(arguments.families) - set(families())):
            parser.error(f"there is no case table {', '.join(sorted(unknown))}; known: {', '.join(families())}")
        return arguments.run(arguments)
    except test_data.MissingTestData as error:
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        return 2


if __name__ == "__main__":
    sys.exit(main())
