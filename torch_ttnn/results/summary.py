"""Aggregates of all rows: totals, families, and the rows that the README shows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch_ttnn.results.record import EVAL, FAILS, NEAR, ON_DEVICE, TRAIN, WITH_HOST_OPS, Row

# Candidates for the README, in order; it shows the first dozen that were measured. They cover common kinds of models:
# CNNs and transformers, text, vision, speech and image generation, and training.
HEADLINES: tuple[tuple[str, str], ...] = (
    ("resnet18", EVAL),
    ("resnet50", EVAL),
    ("mobilenetv2", EVAL),
    ("vit-base", EVAL),
    ("segformer-b0", EVAL),
    ("bert-large-qa", EVAL),
    ("gpt2", EVAL),
    ("t5-small", EVAL),
    ("whisper-small", EVAL),
    ("stable-diffusion-unet", EVAL),
    ("resnet18", TRAIN),
    ("vit-base", TRAIN),
    ("yolov5s", EVAL),
    ("mnist-cnn", EVAL),
    ("clip", EVAL),
    ("swin_t", EVAL),
    ("llama-2L", EVAL),
    ("densenet121", EVAL),
    ("roberta", EVAL),
    ("efficientnet-b0", EVAL),
    ("vgg16", EVAL),
    ("convnext-tiny", EVAL),
    ("distilbert", EVAL),
    ("albert", EVAL),
    ("whisper-tiny", EVAL),
    ("unet-brain", EVAL),
    ("mnist-cnn", TRAIN),
)
DOZEN = 12


@dataclass(frozen=True)
class ModeTotals:
    """Counts of the rows of one mode by outcome."""

    rows: int
    on_device: int
    with_host_ops: int
    failing: int
    near: int  # PCC of at least NEAR
    good: int  # all on the device, and near
    worst: Row | None  # of those that ran, the one with the lowest PCC


@dataclass(frozen=True)
class Totals:
    """Counts over all rows."""

    models: int
    eval: ModeTotals
    train: ModeTotals


@dataclass(frozen=True)
class Family:
    """The models of one family."""

    name: str
    models: int
    totals: ModeTotals  # of their inference rows


def accuracy(row: Row) -> float | None:
    """The PCC of a row: of its outputs, in training of its gradients; None if unknown."""
    found = row.gradient_pcc if row.mode == TRAIN else row.pcc
    return found if found is not None and math.isfinite(found) else None


def is_near(row: Row) -> bool:
    found = accuracy(row)
    return row.status != FAILS and found is not None and found >= NEAR


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Rows in the order of all tables: by name, inference before training."""
    return sorted(rows, key=lambda row: (row.model.casefold(), row.model, row.mode != EVAL, row.mode))


def totals(rows: Iterable[Row]) -> Totals:
    """
    >>> totals([Row("a", status="device", pcc=0.999), Row("b", reason="no memory")]).eval.good
    1
    """
    known = list(rows)
    return Totals(
        models=len({row.model for row in known}),
        eval=_of_mode([row for row in known if row.mode == EVAL]),
        train=_of_mode([row for row in known if row.mode == TRAIN]),
    )


def families(rows: Iterable[Row]) -> list[Family]:
    """Every family with its totals, largest first."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.family].append(row)
    result = [
        Family(name, len({row.model for row in its}), _of_mode([row for row in its if row.mode == EVAL]))
        for name, its in found.items()
    ]
    return sorted(result, key=lambda family: (-family.models, family.name))


def headlines(rows: Iterable[Row], wanted: Sequence[tuple[str, str]] = HEADLINES, count: int = DOZEN) -> list[Row]:
    """The rows that the README shows: inference first, in the order of `wanted`."""
    known = {(row.model, row.mode): row for row in rows}
    chosen = [known[each] for each in wanted if each in known][:count]
    return sorted(chosen, key=lambda row: row.mode != EVAL)


def _of_mode(rows: Sequence[Row]) -> ModeTotals:
    def with_status(status: str) -> int:
        return len([row for row in rows if row.status == status])

    known = [row for row in ordered(rows) if row.status != FAILS and accuracy(row) is not None]
    return ModeTotals(
        rows=len(rows),
        on_device=with_status(ON_DEVICE),
        with_host_ops=with_status(WITH_HOST_OPS),
        failing=with_status(FAILS),
        near=len([row for row in rows if is_near(row)]),
        good=len([row for row in rows if is_near(row) and row.status == ON_DEVICE]),
        worst=min(known, key=lambda row: accuracy(row) or 0.0, default=None),
    )
