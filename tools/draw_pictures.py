"""Draws the pictures of the documentation with our own tools: python tools/draw_pictures.py [folder]

Pictures of pages need a browser (Chromium) and are kept if there is none.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import shutil
import tempfile
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.demo import HIDDEN, TOKENS, device_block
from ttnn_emulator.numerics.mode import numerics

DTYPES = ("bfloat16", "bfloat8_b", "bfloat4_b")
FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
COLOURS = ("#1b5e8c", "#e07b39", "#7a9e48")
MEBI = 2**20


def upload(values: torch.Tensor, dtype: str, device: Any) -> Any:
    return ttnn.from_torch(values, dtype=getattr(ttnn, dtype), layout=ttnn.TILE_LAYOUT, device=device)


def matmul_error(axes: Any, device: Any) -> None:
    """The error of a product by the dtype of its weights, the fidelity, and where it accumulates."""
    torch.manual_seed(0)
    x, w = torch.randn(64, 512), torch.randn(512, 64)
    reference = x.double() @ w.double()
    for colour, dtype in zip(COLOURS, DTYPES):
        for accumulates_wide, style in ((False, "--o"), (True, "-o")):
            errors = []
            for fidelity in FIDELITIES:
                config = ttnn.WormholeComputeKernelConfig(
                    math_fidelity=getattr(ttnn.MathFidelity, fidelity), fp32_dest_acc_en=accumulates_wide
                )
                product = ttnn.matmul(
                    upload(x, "bfloat16", device), upload(w, dtype, device), compute_kernel_config=config
                )
                gap = ttnn.to_torch(product).double() - reference
                errors.append((gap.norm() / reference.norm()).item())
            label = f"{dtype}, {'float32' if accumulates_wide else 'bfloat16'} accumulation"
            axes.semilogy(FIDELITIES, errors, style, color=colour, label=label, markersize=4)
    axes.set_title("64 × 512 × 64 matmul: relative error by weights and fidelity")
    axes.set_ylabel("‖ours − float64‖ ÷ ‖float64‖")
    axes.legend(fontsize=7, loc="upper right", bbox_to_anchor=(1, 0.9))
    axes.grid(alpha=0.3)


class MemoryWatch(ttnn.Listener):
    """Records the DRAM in use after every operation."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.steps: list[tuple[str, float]] = []

    def ended(self, event: ttnn.OperationEvent) -> None:
        if event.depth == 0:
            view = ttnn.get_memory_view(self.device, ttnn.BufferType.DRAM)
            used = view.total_bytes_allocated_per_bank * view.num_banks / MEBI
            self.steps.append((event.name.removeprefix("ttnn.").removeprefix("transformer."), used))


def memory_use(axes: Any, device: Any) -> None:
    """DRAM in use over the calls of a transformer block."""
    torch.manual_seed(0)
    sizes = {"qkv": (HIDDEN, 3 * HIDDEN), "out": (HIDDEN, HIDDEN), "up": (HIDDEN, 1024), "down": (1024, HIDDEN)}
    for colour, dtype in zip(COLOURS, DTYPES):
        weights = {name: upload(torch.randn(s) / math.sqrt(s[0]), dtype, device) for name, s in sizes.items()}
        weights["gamma"] = upload(torch.ones(1, HIDDEN), "bfloat16", device)
        weights["beta"] = upload(torch.zeros(1, HIDDEN), "bfloat16", device)
        x = upload(torch.randn(1, TOKENS, HIDDEN), "bfloat16", device)
        with ttnn.listening(MemoryWatch(device)) as watch:
            device_block(x, weights)
        names, used = zip(*watch.steps)
        axes.step(range(len(used)), used, where="mid", color=colour, label=f"weights in {dtype}")
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
        del weights, x
    axes.set_title("A transformer block: DRAM in use after every call")
    axes.set_ylabel("MiB")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)


TRACED = ("resnet18", "mobilenet_v2", "vit_b_16", "bert-large-qa-2L", "gpt2-2L", "llama-2L")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def tracer_page(path: pathlib.Path) -> None:
    """The page of a run of the tracer, as a browser shows it."""
    from torch_ttnn.cli import main as torch_ttnn_command
    from torch_ttnn.tracer import reports

    with tempfile.TemporaryDirectory() as folder:
        stat = f"{folder}/stat"
        torch_ttnn_command(["stat", *TRACED, "--backward", "-o", stat])
        screenshot(reports.generate(stat, pictures=False, parquet=False).page, path, height=720)


def performance_page(path: pathlib.Path) -> None:
    """The page of the profile of a model, as a browser shows it."""
    from torch_ttnn.cli import main as torch_ttnn_command

    with tempfile.TemporaryDirectory() as folder:
        torch_ttnn_command(["perf", "resnet18", "-o", folder])
        screenshot(pathlib.Path(folder) / "performance.html", path, height=1800)


def screenshot(page: pathlib.Path, path: pathlib.Path, height: int) -> None:
    """What a browser shows of a page; the old picture is kept if there is no browser."""
    from playwright.sync_api import sync_playwright

    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        print(f"none of {', '.join(BROWSERS)} is installed: {path} is kept")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        shown = browser.new_page(viewport={"width": 1180, "height": height})
        shown.goto(page.resolve().as_uri())
        shown.wait_for_timeout(500)  # canvases are drawn in the next frame
        shown.screenshot(path=str(path))
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path("docs/pictures"))
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    plt.rcParams["svg.hashsalt"] = "torch_ttnn"  # deterministic output
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6))
    with ttnn.open_device(device_id=0) as device, numerics("exact"):
        matmul_error(left, device)
        memory_use(right, device)
    figure.tight_layout()
    figure.savefig(folder / "device.svg", metadata={"Date": None})
    tracer_page(folder / "tracer.png")
    performance_page(folder / "performance.png")


if __name__ == "__main__":
    main()
