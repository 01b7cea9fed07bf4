"""Training steps on `ttnn` against eager torch on the CPU: `python benchmarks/training.py`.

Both train the same model on the same batches in turn, so other work on the machine affects both. A step is zero_grad,
forward, backward and AdamW; on `ttnn` the model and the optimizer's step are compiled. Times are medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable

import torch
from rich import box
from rich.console import Console
from rich.table import Table
from torch import nn

from torch_ttnn.eager.device.boards import board_of
from torch_ttnn.zoo.torchvision_ops import ensure_operators

OPERATORS = ensure_operators()  # before torchvision is imported, and as long as it is used
MOVES = ("ttnn.from_torch", "ttnn.to_torch", "ttnn.copy_host_to_device_tensor")
PHASES = ("forward", "backward", "optimizer")
Batch = tuple[torch.Tensor, torch.Tensor]
WARM = 3  # steps: compiling, binding to each other's results, and one that replays


def gpt2(batch: int, dropout: float) -> tuple[nn.Module, Batch]:
    import transformers

    rates = {"resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": dropout}
    config = transformers.GPT2Config(
        n_embd=256, n_head=8, n_layer=4, vocab_size=2000, n_positions=128, use_cache=False, **rates
    )
    tokens = torch.randint(0, 2000, (batch, 129))
    return transformers.GPT2LMHeadModel(config), (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())


def resnet18(batch: int, dropout: float) -> tuple[nn.Module, Batch]:
    import torchvision

    return torchvision.models.resnet18(num_classes=10), (torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,)))


MODELS: dict[str, Callable[[int, float], tuple[nn.Module, Batch]]] = {"gpt2": gpt2, "resnet18": resnet18}


class Training:
    """One model with its optimizer on one device."""

    def __init__(self, name: str, batch: int, dropout: float, device: str, dtype: torch.dtype) -> None:
        torch.manual_seed(0)
        self.model, self.batch = MODELS[name](batch, dropout)
        self.model.train().to(device, dtype)
        self.device, self.dtype = device, dtype
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self._loss, self._step = self._loss_of, self.optimizer.step
        if device == "ttnn":
            self._loss = torch.compile(self._loss_of, backend="ttnn")
            self._step = torch.compile(self.optimizer.step, backend="ttnn")
        self.losses: list[float] = []
        self.seconds: dict[str, list[float]] = {phase: [] for phase in PHASES}

    def _loss_of(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        made = self.model(inputs)
        scores = made if isinstance(made, torch.Tensor) else made.logits
        return nn.functional.cross_entropy(scores.flatten(0, -2).float(), labels.flatten())

    def step(self) -> None:
        inputs, labels = self.batch
        self.optimizer.zero_grad()
        start = time.perf_counter()
        inputs = inputs.to(self.device, self.dtype if inputs.is_floating_point() else inputs.dtype)
        loss = self._loss(inputs, labels.to(self.device))
        forward = time.perf_counter()
        loss.backward()
        backward = time.perf_counter()
        self._step()
        end = time.perf_counter()
        self.losses.append(loss.item())
        for phase, taken in zip(PHASES, (forward - start, backward - forward, end - backward)):
            self.seconds[phase].append(taken)


def calls_of(training: Training) -> Counter[str]:
    """The calls of the library in one step."""
    calls: Counter[str] = Counter()
    with board_of().target.border.listening(lambda path, *_: calls.update([path])):
        training.step()
    return calls


def measure(name: str, arguments: argparse.Namespace) -> None:
    made = [
        Training(name, arguments.batch, arguments.dropout, device, dtype)
        for device, dtype in (("cpu", torch.float32), ("cpu", torch.bfloat16), ("ttnn", torch.float32))
    ]
    for _ in range(arguments.steps):
        for each in made:
            each.step()
    torchs, _, ours = made
    table = Table(box=box.SIMPLE_HEAD, title=f"{name}, batch {arguments.batch}, dropout {arguments.dropout}")
    for title in ("phase", "torch float32, ms", "ttnn, ms", "ratio"):
        table.add_column(title, justify="left" if title == "phase" else "right")
    medians = [{phase: statistics.median(each.seconds[phase][WARM:]) for phase in PHASES} for each in (torchs, ours)]
    for each in medians:
        each["step"] = sum(each.values())
    for phase in (*PHASES, "step"):
        one, other = (each[phase] * 1e3 for each in medians)
        table.add_row(phase, f"{one:.1f}", f"{other:.1f}", f"{other / one:.2f}")
    console = Console()
    console.print(table)
    for title, each in zip(("torch float32", "torch bfloat16", "ttnn"), made):
        console.print(f"losses, {title}:", " ".join(f"{loss:.4f}" for loss in each.losses), soft_wrap=True)
    calls = calls_of(ours)
    moves = sum(calls[move] for move in MOVES)
    console.print(f"calls of a step: {dict(calls)}; {moves} moves", soft_wrap=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0: its own choice")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    for name in arguments.models:
        measure(name, arguments)


if __name__ == "__main__":
    main()
