"""Tasks of trained models with known answers, run with torch and on the device on the same items.

Every task is a function `(model, compiled, limit=None)`; `limit` is the maximum number of items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from torch_ttnn.zoo.trained import images, networks, sentences, words
from torch_ttnn.zoo.trained import photographs as lite

Model = Callable[..., torch.Tensor]
ACCURACY = "accuracy, %"
BATCH = 50  # items at a time
LARGE_BATCH = 4  # for large photographs
ITEMS = 1_000  # of long tasks
SENTENCE_TOKENS = 32
CHOICES = 20


@dataclass(frozen=True)
class Score:
    """The score of a task with torch and on the device."""

    name: str  # MNIST test set
    metric: str  # accuracy, %
    items: int
    torch: float
    device: float


def digits(model: Model, compiled: Model, limit: int | None = None) -> list[Score]:
    """Recognise handwritten digits."""
    data = images.mnist("test").first(limit)
    found = [chosen(each, data.pixels, networks.mnist_input) for each in (model, compiled)]
    return [Score("MNIST test images", ACCURACY, len(data), *(share(each == data.labels) for each in found))]


def pictures(model: Model, compiled: Model, limit: int | None = None) -> list[Score]:
    """Classify small photographs of animals and vehicles."""
    data = images.cifar10("test").first(limit)
    found = [chosen(each, data.pixels, networks.cifar_input) for each in (model, compiled)]
    return [Score("CIFAR-10 test images", ACCURACY, len(data), *(share(each == data.labels) for each in found))]


def photographs(model: Model, compiled: Model, limit: int | None = None) -> list[Score]:
    """Classify a few photographs with ImageNet labels, and many enlarged CIFAR-10 images by groups of its classes."""
    few, many = lite.labelled().first(limit), images.cifar10("test").first(min(limit or ITEMS, ITEMS))
    exact = [chosen(each, few.pixels, lite.inputs, LARGE_BATCH) for each in (model, compiled)]
    coarse = [
        chosen(lambda batch, run=each: lite.grouped(run(batch)), many.pixels, lite.inputs, LARGE_BATCH)
        for each in (model, compiled)
    ]
    return [
        Score("ImageNet photographs", ACCURACY, len(few), *(share(each == few.labels) for each in exact)),
        Score("CIFAR-10 test images, enlarged", ACCURACY, len(many), *(share(each == many.labels) for each in coarse)),
    ]


def reverse_dictionary(model: Model, compiled: Model, limit: int | None = None) -> list[Score]:
    """Find the noun for a definition, among twenty."""
    wanted = words.definitions(limit or ITEMS)
    questions = sentences.tokens([each.text for each in wanted], SENTENCE_TOKENS)
    answers = sentences.tokens([each.word for each in wanted], SENTENCE_TOKENS)
    shares = []
    for each in (model, compiled):
        similarity = embedded(each, questions) @ embedded(each, answers).T
        shares.append(share(best_of(similarity, CHOICES) == torch.arange(len(wanted))))
    return [Score(f"WordNet nouns by definition, one of {CHOICES}", ACCURACY, len(wanted), *shares)]


def best_of(similarity: torch.Tensor, choices: int) -> torch.Tensor:
    """For each question, the most similar answer among those of its group.

    >>> best_of(torch.tensor([[0.2, 0.1, 0.9], [0.3, 0.5, 0.9], [0.0, 0.0, 0.1]]), choices=2)
    tensor([0, 1, 2])
    """
    group = torch.arange(len(similarity)) // choices
    return similarity.masked_fill(group[:, None] != group, -torch.inf).argmax(1)


def chosen(
    model: Model, pixels: torch.Tensor, prepare: Callable[[torch.Tensor], torch.Tensor], batch: int = BATCH
) -> torch.Tensor:
    """The predicted class of each image."""
    return in_batches(lambda some: model(prepare(some)).argmax(1), pixels, batch=batch)


def share(right: torch.Tensor) -> float:
    """In percent."""
    return 100.0 * right.sum().item() / len(right)


def embedded(model: Model, tokens: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The embedding of each text."""
    return in_batches(lambda *columns: model(**dict(zip(tokens, columns))), *tokens.values())


@torch.no_grad()
def in_batches(function: Model, *columns: torch.Tensor, batch: int = BATCH) -> torch.Tensor:
    """Apply a function to many items in batches of equal size, so that one program suffices.

    >>> in_batches(lambda x: 2 * x, torch.arange(51.0))[-2:]
    tensor([ 98., 100.])
    """
    number = len(columns[0])
    results = []
    for start in range(0, number, batch):
        rows = torch.arange(start, start + batch).clamp(max=number - 1)  # the last item pads the last batch
        results.append(function(*(column[rows] for column in columns)).clone())
    return torch.cat(results)[:number]
