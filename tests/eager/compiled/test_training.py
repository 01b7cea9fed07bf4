"""Compiled training on `ttnn`: curves, moves, optimizers, schedulers, and memory."""

from __future__ import annotations

import gc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psutil
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_ttnn.eager.device.boards import board_of
from torch_ttnn.workloads.agreement import pcc
from torch_ttnn.zoo.torchvision_ops import ensure_operators

OPERATORS = ensure_operators()  # before torchvision is imported, and as long as it is used
UPLOADS = ("ttnn.from_torch", "ttnn.copy_host_to_device_tensor")
WARM = 2  # steps after which nothing is compiled or captured
Batch = tuple[torch.Tensor, torch.Tensor]
Optimizer = Callable[[Any], torch.optim.Optimizer]


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-3)


def perceptron() -> tuple[nn.Module, list[Batch]]:
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
    return model, [(torch.randn(12, 8), torch.randint(0, 4, (12,)))]


def gpt2() -> tuple[nn.Module, list[Batch]]:
    transformers = pytest.importorskip("transformers")
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    config = transformers.GPT2Config(n_embd=64, n_head=4, n_layer=2, vocab_size=500, use_cache=False, **rates)
    tokens = torch.randint(0, 500, (4, 33))
    return transformers.GPT2LMHeadModel(config), [(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())]


def resnet18() -> tuple[nn.Module, list[Batch]]:
    torchvision = pytest.importorskip("torchvision")
    model = torchvision.models.resnet18(num_classes=10)
    return model, [(torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,)))]


@dataclass
class Run:
    """A training run: the model, the loss of every step, and the calls of the library in every step."""

    model: nn.Module
    losses: list[float] = field(default_factory=list)
    calls: list[Counter[str]] = field(default_factory=list)


def train(
    make: Callable[[], tuple[nn.Module, list[Batch]]],
    device: str,
    *,
    steps: int = 6,
    optimizer: Optimizer = adamw,
    schedule: Callable[[torch.optim.Optimizer], Any] | None = None,
    dtype: torch.dtype = torch.float32,
    clip: float = 0.0,
    accumulate: int = 1,
    set_to_none: bool = True,
    autocast: bool = False,
) -> Run:
    torch.manual_seed(0)
    model, batches = make()
    model.train().to(device, dtype)

    def loss_of(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, dtype=torch.bfloat16, enabled=autocast):
            made = model(inputs)
            scores = made if isinstance(made, torch.Tensor) else made.logits
            return F.cross_entropy(scores.flatten(0, -2).float(), labels.flatten())

    stepper = optimizer(model.parameters())
    scheduler = schedule(stepper) if schedule is not None else None
    step = stepper.step
    if device == "ttnn":
        loss_of, step = torch.compile(loss_of, backend="ttnn"), torch.compile(stepper.step, backend="ttnn")
    run = Run(model)
    for _ in range(steps):
        calls: Counter[str] = Counter()
        with board_of().target.border.listening(lambda path, *_, calls=calls: calls.update([path])):
            stepper.zero_grad(set_to_none=set_to_none)
            for inputs, labels in batches * accumulate:
                inputs = inputs.to(device, dtype if inputs.is_floating_point() else inputs.dtype)
                loss = loss_of(inputs, labels.to(device)) / accumulate
                loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            step()
            if scheduler is not None:
                scheduler.step()
            run.losses.append(loss.item())
        run.calls.append(calls)
    return run


def distance(one: Run, other: Run) -> float:
    return max(abs(a - b) / max(abs(b), 1.0) for a, b in zip(one.losses, other.losses))


@pytest.mark.parametrize("make", [gpt2, resnet18])
def test_models_follow_torch(make: Callable[[], tuple[nn.Module, list[Batch]]]) -> None:
    expected = train(make, "cpu", steps=20)
    narrow = train(make, "cpu", steps=20, dtype=torch.bfloat16)
    ours = train(make, "ttnn", steps=20)
    assert distance(ours, expected) < max(0.02, distance(narrow, expected))
    for calls in ours.calls[WARM:]:
        assert calls["ttnn.execute_trace"] == 3
        assert sum(calls[each] for each in UPLOADS) == 2  # inputs and labels
        assert calls["ttnn.to_torch"] == 1  # the loss
        assert calls["ttnn.clone"] == 0
        assert calls["ttnn.copy"] <= 5  # inputs and labels to each trace, and the gradient of the loss
    assert statistics_error(ours, expected) <= 1.1 * statistics_error(narrow, expected)


def statistics_error(run: Run, expected: Run) -> float:
    """The error of all statistics of batch norms relative to their size."""
    errors = [
        float((run.model.get_buffer(name).cpu() - each).norm() / each.norm())
        for name, each in expected.model.named_buffers()
        if each.is_floating_point()
    ]
    return sum(errors) / len(errors) if errors else 0.0


def test_statistics_of_batch_norms() -> None:
    expected, ours = (train(resnet18, device, steps=2) for device in ("cpu", "ttnn"))
    mine, torchs = (dict(each.model.named_buffers()) for each in (ours, expected))
    assert all(each.device.type == "ttnn" for each in mine.values())
    counts = [name for name in mine if name.endswith("num_batches_tracked")]
    assert all(mine[name].item() == 2 for name in counts)
    flat = [torch.cat([each[name].cpu() for name in each if name not in counts]) for each in (mine, torchs)]
    assert pcc(*flat) > 0.999
    assert statistics_error(ours, expected) < 0.03


CASES: dict[str, dict[str, Any]] = {
    "SGD": {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.05)},
    "SGD with momentum": {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9)},
    "Adam": {"optimizer": lambda parameters: torch.optim.Adam(parameters, lr=0.01)},
    "Adam with the largest square": {
        "optimizer": lambda parameters: torch.optim.Adam(parameters, lr=0.01, amsgrad=True)
    },
    "RMSprop": {"optimizer": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01)},
    "Adagrad": {"optimizer": lambda parameters: torch.optim.Adagrad(parameters, lr=0.01)},
    "clipped gradients": {"clip": 0.1},
    "accumulated gradients": {"accumulate": 3},
    "zeroed gradients": {"set_to_none": False},
    "autocast": {"autocast": True},
    "a tensor as learning rate": {"optimizer": lambda parameters: torch.optim.AdamW(parameters, lr=torch.tensor(0.01))},
}


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES.keys())
def test_steps_follow_torch(settings: dict[str, Any]) -> None:
    expected, ours = train(perceptron, "cpu", **settings), train(perceptron, "ttnn", **settings)
    assert distance(ours, expected) < 6e-3
    for one, other in zip(ours.model.parameters(), expected.model.parameters()):
        assert pcc(one.detach().cpu(), other.detach()) > 0.999
        assert (one.detach().cpu() - other.detach()).norm() < 0.02 * max(other.detach().norm(), 1.0)
    assert sum(ours.calls[-1][each] for each in (*UPLOADS, "ttnn.to_torch")) <= 2 * settings.get("accumulate", 1) + 3


def test_parameters_in_bfloat16() -> None:
    expected, ours = (train(perceptron, device, dtype=torch.bfloat16) for device in ("cpu", "ttnn"))
    assert distance(ours, expected) < 0.01
    assert {each.dtype for each in ours.model.parameters()} == {torch.bfloat16}


SCHEDULES: dict[str, Callable[[torch.optim.Optimizer], Any]] = {
    "exponential": lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9),
    "cosine": lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10),
    "one cycle, with betas": lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=20),
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES.keys())
def test_schedules_need_two_programs(schedule: Callable[[torch.optim.Optimizer], Any]) -> None:
    expected, ours = (train(perceptron, device, steps=8, schedule=schedule) for device in ("cpu", "ttnn"))
    assert distance(ours, expected) < 6e-3
    assert all(calls["ttnn.execute_trace"] == 3 for calls in ours.calls[WARM + 1 :])


def test_dropout_is_drawn_in_front_of_a_trace() -> None:
    compiled = torch.compile(lambda x: F.dropout(x, 0.5) * 2, backend="ttnn")
    x = torch.ones(4, 64, device="ttnn", requires_grad=True)
    masks, seen = [], []
    for number in range(4):
        torch.manual_seed(number % 2)
        x.grad = None
        calls: Counter[str] = Counter()
        with board_of().target.border.listening(lambda path, *_, calls=calls: calls.update([path])):
            made = compiled(x)
            made.sum().backward()
        masks.append(made.detach().cpu())
        assert torch.equal(x.grad.cpu(), masks[-1])
        seen.append(calls["ttnn.execute_trace"])
    assert torch.equal(masks[0], masks[2]) and torch.equal(masks[1], masks[3])
    assert not torch.equal(masks[0], masks[1])
    assert masks[0].mean().item() == pytest.approx(2.0, abs=0.5)
    assert seen[-1] == 2


def test_step_counts_are_on_the_device() -> None:
    model = nn.Linear(4, 4).to("ttnn")
    optimizer = torch.optim.AdamW(model.parameters())
    step = torch.compile(optimizer.step, backend="ttnn")
    for _ in range(2):
        model(torch.ones(2, 4, device="ttnn")).sum().backward()
        step()
    counts = [state["step"] for state in optimizer.state.values()]
    assert [(each.device.type, each.item()) for each in counts] == [("ttnn", 2.0)] * 2
    model(torch.ones(2, 4, device="ttnn")).sum().backward()
    optimizer.step()  # in eager mode
    assert all(each.item() == 3 for each in counts)
    elsewhere = torch.optim.AdamW(nn.Linear(4, 4).parameters())
    assert not elsewhere.param_groups[0]["capturable"]


def test_a_saved_optimizer_continues() -> None:
    def trained(device: str, restart: bool) -> torch.Tensor:
        torch.manual_seed(0)
        torch._dynamo.reset()
        model, x = nn.Linear(4, 4).to(device), torch.ones(2, 4).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        for _ in range(2):
            step = torch.compile(optimizer.step, backend="ttnn") if device == "ttnn" else optimizer.step
            for _ in range(2):
                optimizer.zero_grad()
                model(x).square().sum().backward()
                step()
            if restart:
                state = optimizer.state_dict()
                optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
                optimizer.load_state_dict(state)
        return model.weight.detach().cpu()

    assert torch.allclose(trained("ttnn", True), trained("cpu", False), atol=2e-3)


def test_saved_activations_of_two_calls() -> None:
    """The second forward pass must not change what the first has saved."""

    def gradient(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)).to(device)
        compiled = torch.compile(model, backend="ttnn") if device == "ttnn" else model
        for _ in range(3):
            model.zero_grad()
            one, other = (compiled(x.to(device)).sum() for x in torch.randn(2, 3, 4))
            (one * 2 + other).backward()
        return model[0].weight.grad.cpu()

    ours, expected = gradient("ttnn"), gradient("cpu")
    assert pcc(ours, expected) > 0.999
    assert (ours - expected).norm() < 0.02 * expected.norm()


def bytes_in_use(steps: int) -> list[int]:
    """The bytes on the device after each step of a training run, whose model is dropped then."""
    model, ((inputs, labels),) = perceptron()
    model.to("ttnn")
    optimizer = adamw(model.parameters())
    loss_of = torch.compile(lambda x, y: F.cross_entropy(model(x), y), backend="ttnn")
    step = torch.compile(optimizer.step, backend="ttnn")
    used = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(inputs.to("ttnn"), labels.to("ttnn")).backward()
        step()
        used.append(torch.ttnn.memory_allocated())
    return used


@pytest.mark.parametrize("steps", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_memory_stays_and_is_freed(steps: int) -> None:
    board = board_of()
    torch.ttnn.empty_cache()
    gc.collect()
    before, traces = torch.ttnn.memory_allocated(), len(board.target.device.traces)
    used = bytes_in_use(10)
    torch._dynamo.reset()
    process = psutil.Process()
    resident = process.memory_info().rss
    used = bytes_in_use(steps)
    assert len(set(used[10:])) == 1
    assert process.memory_info().rss - resident < 64 << 20
    torch.ttnn.empty_cache()
    gc.collect()
    assert torch.ttnn.memory_allocated() == before
    assert len(board.target.device.traces) == traces
