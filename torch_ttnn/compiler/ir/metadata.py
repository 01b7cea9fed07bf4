"""Metadata of nodes, in addition to torch's own entries of `node.meta` (`val`, `stack_trace` …).

One typed key per fact; no other module spells a key of `node.meta`:

    PATH.get(node)      the fact, or None
    PATH[node]          the fact, which must be there
    PATH.on(node)       whether it is there
    annotate(node, path="ttnn.linear", spec=typed)
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

import torch
import torch.fx

if TYPE_CHECKING:
    from typing_extensions import Unpack

Fact = TypeVar("Fact")


class Move(enum.Enum):
    """Host calls that are not operations of the model. The values are stored in the cache on disk."""

    UPLOAD = "upload"
    DOWNLOAD = "download"
    COMPLEX_UPLOAD = "complex_upload"
    COMPLEX_DOWNLOAD = "complex_download"
    RANDOM_STATE = "random_state"
    CHECK = "check"
    HOST_VIEW = "host_view"

    @property
    def is_upload(self) -> bool:
        return self in (Move.UPLOAD, Move.COMPLEX_UPLOAD)

    @property
    def is_download(self) -> bool:
        return self in (Move.DOWNLOAD, Move.COMPLEX_DOWNLOAD, Move.CHECK)

    def __str__(self) -> str:
        """The text shown in reports."""
        return _MOVE_TEXTS[self]


_MOVE_TEXTS = {
    Move.UPLOAD: "part of an upload",
    Move.DOWNLOAD: "part of a download",
    Move.COMPLEX_UPLOAD: "part of an upload of complex numbers",
    Move.COMPLEX_DOWNLOAD: "part of a download of complex numbers",
    Move.RANDOM_STATE: "draws random numbers",
    Move.CHECK: "a check of a download",
    Move.HOST_VIEW: "a view of what a host operation returned",
}


class Key(Generic[Fact]):
    """A typed key of `node.meta`. Methods accept Any, because FX types the arguments of nodes so loosely."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self, node: Any) -> Fact | None:
        return node.meta.get(self.name)

    def __getitem__(self, node: Any) -> Fact:
        return node.meta[self.name]

    def on(self, node: Any) -> bool:
        return self.name in node.meta


# Nodes of a program.
PATH = Key[str]("path")  # the library's function, "ttnn.linear"
SPEC = Key[Any]("spec")  # the result of a device call: a typed tensor, or several
ORIGIN = Key[torch.fx.Node]("origin")  # the captured node that it was written for
REASON = Key[str]("reason")  # why an operation of the model stays on the host
SOURCE = Key[str]("source")  # the line of the model that a host operation comes from
MOVE = Key[Move]("move")
NUMBER = Key[int]("number")  # the index of an input of the captured graph
PREPARED = Key[torch.fx.Node]("prepared")  # of a weight: the node of the `prepare` graph that computes it
CONSTANT = Key[torch.Tensor]("constant")  # of a `get_attr` node: its value
OUTPUT_VALS = Key[Sequence[Any]]("vals")  # of the output: torch's tensors, with their strides
KEPT = Key[Sequence[Any]]("kept")  # of the output: for each result that stays on the device, how it is stored

# Nodes of a captured graph.
POSITION = Key[int]("position")  # the position of its source in the captured graph
CAPTURED = Key[torch.fx.Node]("captured")  # the captured node that it is a copy of
OWN_STRIDES = Key[bool]("own_strides")  # torch's kernel chooses the strides of its result
MEASURED = Key[Any]("measured")  # of a weight whose values are known: bounds that hold for them
EFFECT = Key[bool]("effect")  # it runs for a side effect, such as raising an error, not for a value
SETS_RANDOM_STATE = Key[bool]("sets_random_state")  # it reads or sets torch's generator
RANDOM_STATE = Key[Any]("random_state")  # of a repeated random operation: the generator's state before the first


class Facts(TypedDict, total=False):
    """The arguments of `annotate`: the keys above, and torch's `val`."""

    val: Any
    path: str
    spec: Any
    origin: torch.fx.Node | None
    reason: str
    source: str
    move: Move
    number: int
    prepared: torch.fx.Node
    constant: torch.Tensor
    vals: Sequence[Any]
    kept: Sequence[Any]
    position: int
    captured: torch.fx.Node
    own_strides: bool
    measured: Any
    effect: bool
    sets_random_state: bool
    random_state: Any


def annotate(node: torch.fx.Node, **facts: Unpack[Facts]) -> None:
    """Write facts into `node.meta`."""
    node.meta.update(facts)


def is_upload(node: torch.fx.Node) -> bool:
    return PATH.get(node) == "ttnn.from_torch"


def is_download(node: torch.fx.Node) -> bool:
    return PATH.get(node) == "ttnn.to_torch"
