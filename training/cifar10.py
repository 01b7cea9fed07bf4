"""Trains ResNet-18 on CIFAR-10 at 32 × 32; resumes an interrupted run.

    python training/cifar10.py --state build/cifar10

Image sizes grow with the epochs, because small images suffice for coarse features and cost less. The result is a
running average of the weights. Several workers are data-parallel processes, for machines where these are faster than
threads. A part of the test images is scored after every epoch for the log only; no choice depends on it.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import pathlib
import time
from dataclasses import asdict, dataclass
from functools import partial

import torch
import torch.distributed
import torch.multiprocessing
from publish import publish
from torch import nn
from torch.nn import functional

from torch_ttnn.zoo.trained import images, networks
from ttnn_emulator.atomic_files import replacing


@dataclass(frozen=True)
class Recipe:
    """Everything that the weights depend on besides the data."""

    sizes: tuple[int, ...] = (16,) * 2 + (24,) * 6 + (32,) * 16  # image edge per epoch
    batch: int = 256  # over all workers
    # The learning rate is linear between these points: (epochs done, rate).
    rates: tuple[tuple[float, float], ...] = ((0, 0.0), (4, 0.2), (24, 0.0))
    momentum: float = 0.9
    decay: float = 5e-4  # weight decay; not for norms and biases
    smoothing: float = 0.1  # label smoothing
    shift: int = 3  # maximum shift of an image in pixels
    hidden: int = 8  # edge of the square that is masked in every image
    narrow: bool = True  # bfloat16 products, which take half of the time if the processor has them
    averaging: float = 0.995  # decay of the running average per step
    seed: int = 0

    @property
    def epochs(self) -> int:
        return len(self.sizes)


CALIBRATION = 5_000  # training images for the norms' statistics of the averaged weights
SCORED = 2_000  # test images that are scored after every epoch
TIMEOUT = datetime.timedelta(days=1)  # of collectives: the machine may be paused
LOG_STEPS = 49  # steps between two lines of the log


@dataclass
class State:
    """The training state of one worker; checkpoints contain it."""

    model: nn.Module
    average: nn.Module
    optimizer: torch.optim.Optimizer
    epoch: int = 0

    def save(self, path: pathlib.Path) -> None:
        with replacing(path) as temporary:
            content = {name: getattr(self, name).state_dict() for name in ("model", "average", "optimizer")}
            torch.save({**content, "epoch": self.epoch}, temporary)

    def restore(self, path: pathlib.Path) -> None:
        content = torch.load(path, weights_only=True)
        for name in ("model", "average", "optimizer"):
            getattr(self, name).load_state_dict(content[name])
        self.epoch = content["epoch"]


def fresh(recipe: Recipe) -> State:
    torch.manual_seed(recipe.seed)
    model = networks.cifar_resnet18().to(memory_format=torch.channels_last)
    average = networks.cifar_resnet18().to(memory_format=torch.channels_last)
    average.load_state_dict(model.state_dict())
    by_products(model)
    by_products(average)
    matrices = [weight for weight in model.parameters() if weight.ndim > 1]
    others = [weight for weight in model.parameters() if weight.ndim == 1]
    groups = [{"params": matrices, "weight_decay": recipe.decay}, {"params": others, "weight_decay": 0.0}]
    return State(model, average, torch.optim.SGD(groups, lr=0.0, momentum=recipe.momentum, nesterov=True))


def by_products(model: nn.Module) -> None:
    """Compute the last convolutions, whose images are 2 × 2, as matrix products.

    Only four of the nine taps of a window are inside the image, and gradients of weights are slow there: a step takes
    0.8 of the time at 32 × 32, and 0.5 at 16 × 16.
    """
    for module in model.get_submodule("layer4").modules():
        if isinstance(module, nn.Conv2d) and module.kernel_size == (3, 3) and module.stride == (1, 1):
            module.forward = partial(convolved, module)  # type: ignore[method-assign]


def convolved(convolution: nn.Conv2d, signal: torch.Tensor) -> torch.Tensor:
    """A 3 × 3 convolution with padding 1; for up to four pixels, one product over all pairs of pixels."""
    number, _, height, width = signal.shape
    if height * width > 4:
        return functional.conv2d(signal, convolution.weight, padding=1)
    pixels = [(row, column) for row in range(height) for column in range(width)]
    taps = torch.tensor([[3 * (row - r + 1) + column - c + 1 for row, column in pixels] for r, c in pixels])
    outputs, inputs = convolution.weight.shape[:2]
    chosen = convolution.weight.permute(2, 3, 0, 1).flatten(0, 1).index_select(0, taps.flatten())
    matrix = chosen.view(*taps.shape, outputs, inputs).permute(0, 2, 1, 3).reshape(len(pixels) * outputs, -1)
    result = signal.permute(0, 2, 3, 1).reshape(number, -1) @ matrix.T
    return result.view(number, height, width, outputs).permute(0, 3, 1, 2)


def rate_at(epochs: float, recipe: Recipe) -> float:
    """The learning rate after so many epochs."""
    for (begin, first), (end, last) in itertools.pairwise(recipe.rates):
        if begin < epochs <= end:
            return first + (last - first) * (epochs - begin) / (end - begin)
    return recipe.rates[0 if epochs <= recipe.rates[0][0] else -1][1]


def augmented(pixels: torch.Tensor, mirrored: torch.Tensor, size: int, recipe: Recipe, generator: torch.Generator):
    """A batch of this size: shifted by a few pixels, mirrored where `mirrored` is set, with a square masked."""
    number, edge, shift = len(pixels), pixels.shape[-1], recipe.shift
    wide = functional.pad(networks.cifar_input(pixels), [shift] * 4, mode="reflect")
    rows, columns = torch.randint(0, 2 * shift + 1, (2, number, 1), generator=generator)
    along = torch.arange(edge)
    columns = torch.where(mirrored[:, None], columns + edge - 1 - along, columns + along)
    each = torch.arange(number)[:, None, None]
    moved = wide[each, :, (rows + along)[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    corners = torch.randint(1 - recipe.hidden, edge, (2, number, 1), generator=generator)
    high, across = (along >= corners) & (along < corners + recipe.hidden)
    moved = moved * ~(high[:, None, :, None] & across[:, None, None, :])
    if size != edge:
        moved = functional.interpolate(moved, size=(size, size), mode="bilinear", antialias=True)
    return moved.contiguous(memory_format=torch.channels_last)


def train_epoch(state: State, recipe: Recipe, data: images.Images, worker: int, workers: int) -> float:
    """One pass over the images; every worker takes its share of each batch."""
    shared = torch.Generator().manual_seed(recipe.seed * 1000 + state.epoch)  # the same in every worker
    own = torch.Generator().manual_seed((recipe.seed * 1000 + state.epoch) * 100 + worker)
    flips = torch.Generator().manual_seed(recipe.seed)
    # An image that is mirrored in one epoch is not in the next, so two epochs contain both forms of every image.
    mirrored = (torch.rand(len(data), generator=flips) < 0.5) ^ bool(state.epoch % 2)
    order = torch.randperm(len(data), generator=shared)
    steps = len(order) // recipe.batch
    total = 0.0
    state.model.train()
    for step in range(steps):
        chosen = order[step * recipe.batch : (step + 1) * recipe.batch][worker::workers]
        batch = augmented(data.pixels[chosen], mirrored[chosen], recipe.sizes[state.epoch], recipe, own)
        with torch.autocast("cpu", torch.bfloat16, enabled=recipe.narrow):
            scores = state.model(batch).float()
        loss = functional.cross_entropy(scores, data.labels[chosen], label_smoothing=recipe.smoothing)
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        share_gradients(state.model, workers)
        for group in state.optimizer.param_groups:
            group["lr"] = rate_at(state.epoch + (step + 1) / steps, recipe)
        state.optimizer.step()
        done = state.epoch * steps + step
        keep = min(recipe.averaging, (1 + done) / (10 + done))  # the random initial weights decay quickly
        average_into(state.average, state.model, keep)
        total += loss.item()
        if worker == 0 and (step + 1) % LOG_STEPS == 0:
            print(f"epoch {state.epoch + 1}, step {step + 1} of {steps}: loss {total / (step + 1):.4f}", flush=True)
    return total / steps


def share_gradients(model: nn.Module, workers: int) -> None:
    if workers == 1:
        return
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    joined = torch.cat([gradient.flatten() for gradient in gradients])
    torch.distributed.all_reduce(joined)
    joined /= workers
    for gradient, part in zip(gradients, joined.split([gradient.numel() for gradient in gradients])):
        gradient.copy_(part.view_as(gradient))


@torch.no_grad()
def average_into(average: nn.Module, model: nn.Module, keep: float) -> None:
    kept, new = list(average.parameters()), list(model.parameters())
    torch._foreach_mul_(kept, keep)
    torch._foreach_add_(kept, new, alpha=1 - keep)
    for old, now in zip(average.buffers(), model.buffers()):
        if old.is_floating_point():
            old.lerp_(now, 1 - keep)
        else:
            old.copy_(now)


@torch.no_grad()
def calibrate(model: nn.Module, data: images.Images) -> None:
    """Compute the norms' statistics from images as in tests: not shifted and of full size."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over all batches
    model.train()
    for batch in data.first(CALIBRATION).pixels.split(250):
        model(networks.cifar_input(batch).contiguous(memory_format=torch.channels_last))
    model.eval()


@torch.no_grad()
def accuracy(model: nn.Module, data: images.Images) -> float:
    """Percent of the images that are classified correctly."""
    model.eval()
    right = 0
    for batch, labels in zip(data.pixels.split(250), data.labels.split(250)):
        found = model(networks.cifar_input(batch).contiguous(memory_format=torch.channels_last)).argmax(1)
        right += int((found == labels).sum())
    return 100 * right / len(data)


def work(worker: int, workers: int, recipe: Recipe, folder: pathlib.Path) -> None:
    """Train in one process."""
    if workers > 1:
        torch.set_num_threads(1)
        store = torch.distributed.FileStore(str(folder / "rendezvous"), workers)
        torch.distributed.init_process_group("gloo", store=store, rank=worker, world_size=workers, timeout=TIMEOUT)
    data = images.cifar10("train")
    state, checkpoint = fresh(recipe), folder / "checkpoint.pt"
    if checkpoint.exists():
        state.restore(checkpoint)
    scored = images.cifar10("test").first(SCORED)
    while state.epoch < recipe.epochs:
        start, spent = time.time(), time.process_time()
        loss = train_epoch(state, recipe, data, worker, workers)
        state.epoch += 1
        if worker == 0:
            record = {
                "epoch": state.epoch,
                "size": recipe.sizes[state.epoch - 1],
                "loss": round(loss, 4),
                "accuracy": round(accuracy(state.model, scored), 2),
                "averaged": round(accuracy(state.average, scored), 2),
                "seconds": round(time.time() - start),
                "processor seconds": round(time.process_time() - spent),
            }
            with (folder / "log.jsonl").open("a", encoding="utf-8") as log:
                log.write(json.dumps(record) + "\n")
            print(record, flush=True)
            state.save(checkpoint)
    if worker == 0:
        calibrate(state.average, data)
        plain = networks.cifar_resnet18()
        plain.load_state_dict(state.average.state_dict())
        test = images.cifar10("test")
        print(publish("resnet18-cifar10", plain, lambda model: accuracy(model, test), asdict(recipe)), flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--state", type=pathlib.Path, required=True, help="folder of checkpoint and log")
    arguments.add_argument("--workers", type=int, default=1, help="number of processes; several have one thread each")
    chosen = arguments.parse_args()
    chosen.state.mkdir(parents=True, exist_ok=True)
    (chosen.state / "rendezvous").unlink(missing_ok=True)
    torch.multiprocessing.spawn(work, (chosen.workers, Recipe(), chosen.state), nprocs=chosen.workers)


if __name__ == "__main__":
    main()
