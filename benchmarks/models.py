"""Speed of compiled models compared with eager torch and Inductor in one run.

    python benchmarks/models.py [--models bert-large-qa,gpt2] [--rounds N] [--no-inductor] [--threads N] [--json FILE]
    python benchmarks/models.py --layers [8,16]   compile time by depth, compared with aot_eager
    python benchmarks/models.py --rss             peak memory of a warm BERT-Large run, in separate processes
    python benchmarks/models.py --kept            our stages in a first process, and in later ones with its programs

Every round runs all backends in rotated order, every second round reversed, so that changes of the machine's speed and
of its caches affect all alike. Times are medians of warm rounds. Each backend has its own copy of the model: Inductor
requests writable weights, which breaks the copy-on-write sharing that detects changed weights, and both would copy all
weights in every round. Compile time is the first call minus a warm one, the better of two, after one compile by
aot_eager that is not counted, because torch caches information about operators. Programs are not cached on disk.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch._inductor.utils import fresh_cache

import torch_ttnn
from torch_ttnn import zoo
from ttnn_emulator.atomic_files import replacing

# The measured models, and the arguments of their inputs.
CASES: dict[str, dict[str, int]] = {
    "bert-large-qa": {"length": 384},
    "gpt2": {"length": 128},
    "codegen-350M": {"length": 128},
    "resnet18": {},
    "mnist-cnn": {},
}
COMPILES = 2
DEPTHS = "8,16,32,64"
RSS_MODEL = "bert-large-qa"
RSS_CALLS = 3
EAGER, AOT_EAGER, INDUCTOR = "eager", "aot_eager", "inductor"

Call = Callable[[], Any]


@dataclass
class Timing:
    """Times of one backend on one model."""

    warm: float  # seconds, median
    compiling: float = 0.0  # seconds; 0 for eager
    pcc: float = 1.0  # lowest of all outputs, against eager float32


@dataclass
class Comparison:
    model: str
    timings: dict[str, Timing] = field(default_factory=dict)

    def ratio(self, ours: str, peer: str) -> float | None:
        if ours not in self.timings or peer not in self.timings:
            return None
        return self.timings[ours].warm / self.timings[peer].warm


def pcc(ours: torch.Tensor, exact: torch.Tensor) -> float:
    """Correlation of two flattened tensors; of constant ones, whether they are equal."""
    one, other = (values.detach().flatten().double() for values in (ours, exact))
    one, other = one - one.mean(), other - other.mean()
    size = one.norm() * other.norm()
    return (one @ other / size).item() if size else float(torch.equal(ours, exact))


def lowest_pcc(ours: Any, exact: Any) -> float:
    pairs = zip(zoo.tensors(ours), zoo.tensors(exact), strict=True)
    return min(pcc(a, b) for a, b in pairs if b.is_floating_point())


def seconds_of(call: Call) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def compiled_call(model: torch.nn.Module, backend: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> Call:
    compiled = torch.compile(model, backend=backend)
    return lambda: compiled(*arguments, **keywords)


def warm_up_compilers(backends: Sequence[str]) -> None:
    """Exclude what a compiler does once per process (imports, search for the C++ compiler) from compile times."""
    tiny = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()).eval()
    for backend in backends:
        compiled_call(tiny, backend, (torch.zeros(32, 32),), {})()
    torch._dynamo.reset()


def warm_up_operators(model: torch.nn.Module, arguments: Sequence[Any], keywords: dict[str, Any]) -> None:
    """One compile that is not counted, so that torch's caches are equally filled for all others."""
    compiled_call(model, AOT_EAGER, arguments, keywords)()
    torch._dynamo.reset()


def compile_seconds(
    model: torch.nn.Module, backends: Sequence[str], arguments: Sequence[Any], keywords: dict[str, Any]
) -> dict[str, Timing]:
    """First calls minus warm ones, interleaved; the best of each, since disturbances only add time."""
    warm_up_operators(model, arguments, keywords)
    found: dict[str, Timing] = {}
    for _ in range(COMPILES):
        for backend in backends:
            gc.collect()
            call = compiled_call(model, backend, arguments, keywords)
            first, _ = seconds_of(call)
            call()  # the second call may still prepare values
            warm, _ = seconds_of(call)
            torch._dynamo.reset()
            timing = Timing(warm, max(0.0, first - warm))
            found[backend] = min(timing, found.get(backend, timing), key=lambda timing: timing.compiling)
    return found


def interleaved(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Medians of all calls, in rounds of rotated and alternately reversed order."""
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        start = turn % len(names)
        order = names[start:] + names[:start]
        for name in order if turn % 2 == 0 else reversed(order):
            times[name].append(seconds_of(calls[name])[0])
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def compare(name: str, backends: Sequence[str], rounds: int) -> Comparison:
    """All backends on one model, including aot_eager, the reference of compile times."""
    entry = zoo.find(name)
    model = entry.build()
    arguments, keywords = entry.inputs(seed=0, **CASES.get(name, {}))
    calls: dict[str, Call] = {EAGER: lambda: model(*arguments, **keywords)}
    exact = calls[EAGER]()
    compiling = compile_seconds(model, backends, arguments, keywords)
    agreement = {EAGER: 1.0}
    for backend in backends:
        calls[backend] = compiled_call(copy.deepcopy(model), backend, arguments, keywords)
        agreement[backend] = lowest_pcc(calls[backend](), exact)
        calls[backend]()
    warm = interleaved(calls, rounds)
    torch._dynamo.reset()
    timings = {
        contender: Timing(
            warm[contender], compiling[contender].compiling if contender in compiling else 0.0, agreement[contender]
        )
        for contender in calls
    }
    return Comparison(name, timings)


def compare_depths(depths: Sequence[int], backend: str) -> list[Comparison]:
    """Compile times of a small BERT of several depths; the ratio should not depend on the depth."""
    found = []
    for layers in depths:
        entry = zoo.find("bert-large-qa").resized(
            f"{layers} layers", "A small BERT.", num_hidden_layers=layers, hidden_size=128, num_attention_heads=4,
            intermediate_size=512, vocab_size=1024,
        )  # fmt: skip
        model = entry.build()
        keywords = {"input_ids": torch.randint(0, 1024, (1, 32))}
        found.append(Comparison(entry.name, compile_seconds(model, (AOT_EAGER, backend), (), keywords)))
    return found


def peak_megabytes() -> float:
    """Peak memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10  # bytes there, kilobytes elsewhere


def warm_run(contender: str) -> dict[str, float]:
    """In a new process: peak memory after building the model, and after some calls."""
    entry = zoo.find(RSS_MODEL)
    model = entry.build()
    arguments, keywords = entry.inputs(seed=0, **CASES[RSS_MODEL])
    built = peak_megabytes()
    ready = model if contender == EAGER else torch.compile(model, backend=contender)
    for _ in range(RSS_CALLS):
        ready(*arguments, **keywords)
    return {"built": built, "peak": peak_megabytes()}


def compare_memory(contenders: Sequence[str]) -> dict[str, dict[str, float]]:
    return {contender: in_new_process("--rss-of", contender) for contender in contenders}


def in_new_process(*arguments: str) -> Any:
    """The last line that this script prints with these arguments, as JSON."""
    command = [sys.executable, __file__, *arguments, "--threads", str(torch.get_num_threads())]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def stage_seconds(name: str, folder: str) -> dict[str, float]:
    """In a new process: seconds of our own stages, over all graphs of a model."""
    entry = zoo.find(name)
    model = entry.build()
    arguments, keywords = entry.inputs(seed=0, **CASES.get(name, {}))
    options = torch_ttnn.TorchTtnnOption(cache_dir=folder)
    torch.compile(model, backend="ttnn", options=options)(*arguments, **keywords)  # type: ignore[call-overload]
    found: dict[str, float] = {}
    for program in options.programs:
        for stage, seconds in program.seconds.items():
            if stage != "capture":  # torch's own: Dynamo and AOTAutograd
                found[stage] = found.get(stage, 0.0) + seconds
    return found


def compare_processes(names: Sequence[str], rounds: int) -> dict[str, list[dict[str, float]]]:
    """Seconds of the stages in each model's first process, and in one more process per round."""
    found = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = [in_new_process("--stages-of", name, folder) for _ in range(1 + rounds)]
    return found


def shown_seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"


def shown_ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def speed_table(rows: Sequence[Comparison], backend: str) -> Table:
    title = "Warm runs, medians of interleaved rounds"
    table = Table("model", EAGER, INDUCTOR, backend, "/ eager", "/ inductor", "PCC", title=title)
    for row in rows:
        times = [shown_seconds(row.timings[n].warm) if n in row.timings else "" for n in (EAGER, INDUCTOR, backend)]
        ratios = [shown_ratio(row.ratio(backend, peer)) for peer in (EAGER, INDUCTOR)]
        table.add_row(row.model, *times, *ratios, f"{row.timings[backend].pcc:.5f}")
    return table


def compile_table(rows: Sequence[Comparison], backend: str) -> Table:
    table = Table("model", AOT_EAGER, INDUCTOR, backend, "/ aot_eager", title="Compile times")
    for row in rows:
        times = [
            shown_seconds(row.timings[n].compiling) if n in row.timings else "" for n in (AOT_EAGER, INDUCTOR, backend)
        ]
        base = row.timings[AOT_EAGER].compiling
        table.add_row(row.model, *times, shown_ratio(row.timings[backend].compiling / base if base else None))
    return table


def memory_table(found: dict[str, dict[str, float]]) -> Table:
    table = Table("run", "model built", "peak", "/ eager", title=f"Peak memory of {RSS_MODEL}, {RSS_CALLS} calls")
    for contender, peaks in found.items():
        ratio = peaks["peak"] / found[EAGER]["peak"]
        table.add_row(contender, f"{peaks['built']:,.0f} MB", f"{peaks['peak']:,.0f} MB", f"{ratio:.2f}")
    return table


def kept_table(found: dict[str, list[dict[str, float]]]) -> Table:
    table = Table("model", "first process", "a later one", "/ first", title="Our own stages, programs cached on disk")
    for name, (first, *later) in found.items():
        before, after = sum(first.values()), statistics.median(sum(stages.values()) for stages in later)
        table.add_row(name, shown_seconds(before), shown_seconds(after), shown_ratio(after / before))
    return table


def arguments_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(CASES), help="names of the zoo, separated by commas")
    parser.add_argument("--rounds", type=int, default=10, help="warm rounds of each model")
    parser.add_argument("--no-inductor", action="store_true", help="omit Inductor")
    parser.add_argument("--threads", type=int, help="threads of torch (default: all cores)")
    parser.add_argument(
        "--layers",
        nargs="?",
        const=DEPTHS,
        help=f"measure compile times of a small BERT with these numbers of layers ({DEPTHS})",
    )
    parser.add_argument("--rss", action="store_true", help="measure peak memory in new processes")
    parser.add_argument("--kept", action="store_true", help="measure our stages in successive processes")
    parser.add_argument("--json", type=pathlib.Path, help="also write the measurements to this file")
    parser.add_argument("--backend", default="ttnn", help=argparse.SUPPRESS)  # for tests of this script
    parser.add_argument("--rss-of", help=argparse.SUPPRESS)  # in the new processes of --rss
    parser.add_argument("--stages-of", nargs=2, help=argparse.SUPPRESS)  # in those of --kept
    return parser


def measure(options: argparse.Namespace, console: Console) -> Any:
    if options.rss:
        memory = compare_memory((EAGER, options.backend))
        console.print(memory_table(memory))
        return memory
    if options.kept:
        stages = compare_processes(options.models.split(","), options.rounds)
        console.print(kept_table(stages))
        return stages
    peers = [AOT_EAGER] if options.no_inductor or options.layers else [AOT_EAGER, INDUCTOR]
    backends = list(dict.fromkeys([*peers, options.backend]))
    warm_up_compilers(backends)
    if options.layers:
        rows = compare_depths([int(layers) for layers in options.layers.split(",")], options.backend)
    else:
        rows = [compare(name, backends, options.rounds) for name in options.models.split(",")]
        console.print(speed_table(rows, options.backend))
    console.print(compile_table(rows, options.backend))
    return [asdict(row) for row in rows]


def main() -> int:
    options = arguments_parser().parse_args()
    os.environ["TORCH_TTNN_CACHE_DIR"] = ""
    if options.threads:
        torch.set_num_threads(options.threads)
    with torch.no_grad():
        if options.rss_of:
            print(json.dumps(warm_run(options.rss_of)))
            return 0
        if options.stages_of:
            print(json.dumps(stage_seconds(*options.stages_of)))
            return 0
        with fresh_cache():  # nothing from earlier runs of Inductor
            measured = measure(options, Console())
    if options.json:
        with replacing(options.json) as temporary:
            temporary.write_text(json.dumps(measured, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
