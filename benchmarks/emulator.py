"""Speed of the emulated device, as ratios and overheads measured in one run.

    python benchmarks/emulator.py [--json FILE] [--rounds N]

Every number compares two functions on the same machine in interleaved rounds, and is a median;
absolute times of a shared machine mean little.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from rich.console import Console
from rich.table import Table

import ttnn_emulator as ttnn
from ttnn_emulator.atomic_files import replacing


@dataclass
class Measurement:
    name: str
    ours: float  # seconds
    peer: float  # seconds of the same computation in torch; 0 if there is none
    limit: str = ""  # empty if there is none
    is_met: bool = True


most_rounds = 50


def median_seconds(function: Callable[[], object], *, rounds: int = 30, calls: int = 1) -> float:
    function()
    times = []
    for _ in range(min(rounds, most_rounds)):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        times.append((time.perf_counter() - start) / calls)
    return statistics.median(times)


def interleaved(
    ours: Callable[[], object], peer: Callable[[], object], *, rounds: int, calls: int
) -> tuple[float, float]:
    """Medians of two interleaved functions, so that changes of the machine's speed affect both."""
    ours(), peer()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(min(rounds, most_rounds)):
        for function, seconds in zip((ours, peer), times):
            start = time.perf_counter()
            for _ in range(calls):
                function()
            seconds.append((time.perf_counter() - start) / calls)
    return statistics.median(times[0]), statistics.median(times[1])


def upload(values: torch.Tensor, device: ttnn.MeshDevice, dtype: ttnn.DataType = ttnn.bfloat16) -> ttnn.Tensor:
    return ttnn.from_torch(values, dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)


def spec_only(device: ttnn.MeshDevice) -> list[Measurement]:
    """A call on specs alone: with its plan in the program cache, and without."""
    x = upload(torch.randn(1, 1, 64, 64), device)
    weight = upload(torch.randn(64, 64), device)
    calls: dict[str, Callable[[], object]] = {
        "relu": lambda: ttnn.relu(x),
        "add": lambda: ttnn.add(x, x),
        "matmul": lambda: ttnn.matmul(x, weight),
        "softmax": lambda: ttnn.softmax(x, dim=-1),
        "layer_norm": lambda: ttnn.layer_norm(x),
        "permute": lambda: ttnn.permute(x, (0, 2, 1, 3)),
        "reshape": lambda: ttnn.reshape(x, (1, 64, 64)),
    }
    found = []
    with ttnn.specs_only():
        for name, call in calls.items():
            seconds = median_seconds(call, rounds=50, calls=200)
            found.append(Measurement(f"spec of {name}", seconds, 0.0, "≤ 25 µs", seconds <= 25e-6))

            def cold(call: Callable[[], object] = call) -> None:
                device.clear_program_cache()
                call()

            first = median_seconds(cold, rounds=50, calls=20)
            found.append(Measurement(f"spec of {name}, first call", first, 0.0))
    median = statistics.median(item.ours for item in found if item.limit)
    return [*found, Measurement("median of the specs", median, 0.0, "≤ 25 µs", median <= 25e-6)]


def small_calls(device: ttnn.MeshDevice) -> list[Measurement]:
    """Overhead of a call on a small tensor over the same call in torch."""
    values = torch.randn(32, 32)
    x, other = upload(values, device), upload(values, device)
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "relu": (lambda: ttnn.relu(x), lambda: torch.relu(values)),
        "add": (lambda: ttnn.add(x, other), lambda: torch.add(values, values)),
        "exp": (lambda: ttnn.exp(x), lambda: torch.exp(values)),
        "permute": (lambda: ttnn.permute(x, (1, 0)), lambda: values.permute(1, 0).contiguous()),
    }
    found = []
    for name, (ours, peer) in pairs.items():
        a, b = interleaved(ours, peer, rounds=50, calls=100)
        found.append(Measurement(f"{name} 32 × 32", a, b, "≤ torch + 25 µs", a - b <= 25e-6))
    return found


def large_calls(device: ttnn.MeshDevice) -> list[Measurement]:
    """Matmul and a convolution of ResNet against torch in float32."""
    left, right = torch.randn(1024, 1024), torch.randn(1024, 1024)
    a, b = upload(left, device), upload(right, device)
    ours, peer = interleaved(lambda: ttnn.matmul(a, b), lambda: left @ right, rounds=25, calls=2)
    found = [Measurement("matmul 1024³", ours, peer, "≤ 1.15 × torch", ours <= 1.15 * peer)]
    for name, channels, size, kernel in (
        ("conv 3×3, 64 → 64, 56²", 64, 56, 3),
        ("conv 1×1, 256 → 256, 28²", 256, 28, 1),
    ):
        ours, peer = convolution(device, channels, size, kernel)
        found.append(Measurement(name, ours, peer, "≤ 1.15 × torch", ours <= 1.15 * peer))
    return found


def layers_of_a_transformer(device: ttnn.MeshDevice) -> list[Measurement]:
    """Operations of a layer of BERT-Large at 384 tokens, and of GPT-2's last layer at 128, slowest first."""
    functional = torch.nn.functional
    hidden, wide, scores = torch.randn(1, 384, 1024), torch.randn(1, 384, 4096), torch.randn(1, 16, 384, 384)
    heads, row = torch.randn(1, 16, 384, 64), torch.randn(1024)
    up, down, square = torch.randn(4096, 1024), torch.randn(1024, 4096), torch.randn(1024, 1024)
    vocabulary, short, table = torch.randn(50257, 768), torch.randn(1, 128, 768), torch.randn(30522, 1024)
    tokens = torch.randint(0, 30000, (1, 384))
    x, h, s, q = (upload(each, device) for each in (hidden, wide, scores, heads))
    w_up, w_down, w_square = (upload(each.T.contiguous(), device) for each in (up, down, square))
    w_last, y, weight = upload(vocabulary.T.contiguous(), device), upload(short, device), upload(row[None], device)
    rows = ttnn.from_torch(table, dtype=ttnn.bfloat16, device=device)
    ids = ttnn.from_torch(tokens, dtype=ttnn.uint32, device=device)
    attention = ttnn.transformer.scaled_dot_product_attention
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "linear 384 × 1024 × 4096": (lambda: ttnn.linear(x, w_up), lambda: functional.linear(hidden, up)),
        "linear 384 × 4096 × 1024": (lambda: ttnn.linear(h, w_down), lambda: functional.linear(wide, down)),
        "linear 384 × 1024 × 1024": (lambda: ttnn.linear(x, w_square), lambda: functional.linear(hidden, square)),
        "linear and gelu": (
            lambda: ttnn.linear(x, w_up, activation="gelu"),
            lambda: functional.gelu(functional.linear(hidden, up)),
        ),
        "linear 128 × 768 × 50257": (lambda: ttnn.linear(y, w_last), lambda: functional.linear(short, vocabulary)),
        "attention 16 × 384 × 64": (
            lambda: attention(q, q, q, is_causal=False),
            lambda: functional.scaled_dot_product_attention(heads, heads, heads),
        ),
        "attention, causal": (
            lambda: attention(q, q, q, is_causal=True),
            lambda: functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True),
        ),
        "scores 16 × 384 × 64": (lambda: ttnn.matmul(q, q, transpose_b=True), lambda: heads @ heads.mT),
        "softmax 16 × 384 × 384": (lambda: ttnn.softmax(s, dim=-1), lambda: scores.softmax(-1)),
        "layer_norm 384 × 1024": (
            lambda: ttnn.layer_norm(x, weight=weight, bias=weight),
            lambda: functional.layer_norm(hidden, (1024,), row, row),
        ),
        "gelu 384 × 4096": (lambda: ttnn.gelu(h), lambda: functional.gelu(wide)),
        "add 384 × 1024": (lambda: ttnn.add(x, x), lambda: hidden + hidden),
        "sum of rows 384 × 1024": (lambda: ttnn.sum(x, dim=-1), lambda: hidden.sum(-1)),
        "embedding of 384 tokens": (
            lambda: ttnn.embedding(ids, rows, layout=ttnn.TILE_LAYOUT),
            lambda: functional.embedding(tokens, table),
        ),
    }
    found = []
    for name, (ours, peer) in pairs.items():
        a, b = interleaved(ours, peer, rounds=15, calls=1)
        is_limited = name.startswith("linear")
        found.append(Measurement(name, a, b, "≤ 1.05 × torch" if is_limited else "", a <= 1.05 * b or not is_limited))
    return found


def convolution(device: ttnn.MeshDevice, channels: int, size: int, kernel: int) -> tuple[float, float]:
    image = torch.randn(1, channels, size, size)
    weight = torch.randn(channels, channels, kernel, kernel)
    pad = kernel // 2
    x = ttnn.from_torch(
        image.permute(0, 2, 3, 1).reshape(1, 1, size * size, channels), dtype=ttnn.bfloat16, device=device
    )
    arguments = {
        "input_tensor": x, "device": device, "in_channels": channels, "out_channels": channels, "batch_size": 1,
        "input_height": size, "input_width": size, "kernel_size": (kernel, kernel), "stride": (1, 1),
        "padding": (pad, pad),
    }  # fmt: skip
    _, (prepared, _) = ttnn.conv2d(
        weight_tensor=ttnn.from_torch(weight, dtype=ttnn.bfloat16), return_weights_and_bias=True, **arguments
    )
    return interleaved(
        lambda: ttnn.conv2d(weight_tensor=prepared, **arguments),
        lambda: torch.nn.functional.conv2d(image, weight, padding=pad),
        rounds=25,
        calls=3,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, help="also write the measurements to this file")
    parser.add_argument("--rounds", type=int, default=50, help="maximum number of rounds per measurement")
    options = parser.parse_args()
    global most_rounds
    most_rounds = options.rounds
    with ttnn.open_device(device_id=0, l1_small_size=32768) as device:
        measured = spec_only(device) + small_calls(device) + large_calls(device) + layers_of_a_transformer(device)
    table = Table(
        "what", "emulator", "torch float32", "ratio", "limit", "", title="The emulated device on this machine"
    )
    for item in measured:
        ratio = f"{item.ours / item.peer:.2f}" if item.peer else ""
        peer = f"{item.peer * 1e6:,.1f} µs" if item.peer else ""
        mark = ("[green]met[/]" if item.is_met else "[red]exceeded[/]") if item.limit else ""
        table.add_row(item.name, f"{item.ours * 1e6:,.1f} µs", peer, ratio, item.limit, mark)
    Console().print(table)
    if options.json:
        with replacing(options.json) as temporary:
            temporary.write_text(json.dumps([asdict(item) for item in measured], indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
