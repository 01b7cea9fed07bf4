"""torchvision's models with inputs for each kind."""

from __future__ import annotations

from torch_ttnn.zoo import torchvision_kinds
from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.sources import library
from torch_ttnn.zoo.torchvision_kinds import TASKS, TRAINING_BATCH

__all__ = ["TASKS", "TRAINING_BATCH", "entry", "names", "task_of"]


def names(task: str) -> list[str]:
    """All models of a kind, without quantised ones."""
    models = library("torchvision.models")
    module = TASKS[task].module
    return models.list_models(module=getattr(models, module) if module else models)


def task_of(name: str) -> str | None:
    return next((task for task in TASKS if name in names(task)), None)


def entry(name: str) -> ModelEntry:
    return torchvision_kinds.entry(name, task_of(name) or "classification")
