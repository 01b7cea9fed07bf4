"""Warm calls of small programs on the emulator, without intermediate copies of inputs and results.

If the host only uploads inputs with `from_torch` before a trace, and only downloads its results with `to_torch`, the
emulator can read inputs from torch's memory and write results into it in one call
(`ttnn_emulator.execution.direct_replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.fx

from torch_ttnn.compiler.ir.metadata import NUMBER, PATH
from ttnn_emulator.execution.direct_replay import DirectReplay as EmulatorReplay
from ttnn_emulator.execution.direct_replay import direct_replay

if TYPE_CHECKING:
    from torch_ttnn.compiler.runtime.trace import Parts

UPLOADING = frozenset({"dtype", "layout", "device", "memory_config"})  # arguments that do not change values

Download = tuple[int, torch.dtype | None]  # index of the result of the trace, and the dtype of the download


class DirectReplay:
    """The direct replay of one traced program, once the emulator supports it."""

    def __init__(self, uploads: list[int], downloads: list[Download], finish: Callable[..., Any]) -> None:
        self._uploads = uploads  # indices of inputs
        self._downloads = downloads
        self._finish = finish
        self._replay: EmulatorReplay | None = None

    @classmethod
    def of(cls, parts: Parts, function: Callable[..., Any]) -> DirectReplay | None:
        """None if the host does more than upload and download; `function` compiles nodes into a function."""
        downloads = [node for node in parts.after if any(each in parts.downloaded for each in node.all_input_nodes)]
        if parts.uploaded != parts.before or not all(map(_is_plain_upload, parts.before)):
            return None
        if not all(map(_is_plain_download, downloads)):
            return None
        rest = [node for node in parts.after if node not in downloads]
        if any((PATH.get(node) or "").startswith("ttnn.") for node in rest):
            return None
        finish = function("finish(weights, inputs, made)", parts.placeholders, rest, downloads)
        uploads = [NUMBER[node.args[0]] for node in parts.before]  # type: ignore[union-attr]
        places = [parts.downloaded.index(node.args[0]) for node in downloads]  # type: ignore[arg-type]
        dtypes = [node.kwargs.get("dtype") for node in downloads]
        return cls(uploads, list(zip(places, dtypes)), finish)  # type: ignore[arg-type]

    def __call__(self, weights: list[Any], inputs: Sequence[Any]) -> Any:
        """The outputs of the program; None if it has to be run by an ordinary replay."""
        if self._replay is None:
            return None
        made = self._replay([inputs[number] for number in self._uploads])
        if made is None:
            self._replay = None
            return None
        return self._finish(weights, inputs, made)

    def prepare(self, device: Any, trace: int, buffers: Sequence[Any], results: Sequence[Any]) -> None:
        """Prepare direct replay, if the emulator supports it by now."""
        self._replay = direct_replay(
            device, trace, buffers, [(results[index], dtype) for index, dtype in self._downloads]
        )

    def forget(self) -> None:
        self._replay = None


def _is_plain_upload(node: torch.fx.Node) -> bool:
    given = node.args[0] if len(node.args) == 1 else None
    is_input = isinstance(given, torch.fx.Node) and given.op == "placeholder"
    return PATH.get(node) == "ttnn.from_torch" and is_input and set(node.kwargs) <= UPLOADING


def _is_plain_download(node: torch.fx.Node) -> bool:
    return PATH.get(node) == "ttnn.to_torch" and len(node.args) == 1 and set(node.kwargs) <= {"dtype"}
