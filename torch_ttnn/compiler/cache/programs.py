"""Caches compiled programs on disk, so that the next process does not lower the same graph again.

The key covers the graph with all shapes and constants, the relevant options, the board, and the versions and sources of
torch, the compiler and the emulator. A program that depends on anything else is not cached, and the log says why.
"""

from __future__ import annotations

import hashlib
import json
import logging
import operator
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import torch.fx

import ttnn_emulator
from torch_ttnn.compiler.cache.serialisation import NotSerialisable, from_document, to_document
from torch_ttnn.compiler.frontend.higher_order import subgraph, subgraphs
from torch_ttnn.compiler.lowering.registry import users_sources
from torch_ttnn.compiler.stages.lower import Lowered
from torch_ttnn.devices import Target
from torch_ttnn.options import TorchTtnnOption
from ttnn_emulator.atomic_files import replacing

log = logging.getLogger("torch_ttnn")

VARIABLE = "TORCH_TTNN_CACHE_DIR"
FORMAT = 4
OPTIONS_THAT_MATTER = ("precision", "weights", "accept", "fuse", "host_ops")
MOST_PROGRAMS = 1000  # in one folder; the oldest are deleted
MAX_CONSTANT_BYTES = 64 << 20  # a graph with more is not cached


def folder(options: TorchTtnnOption) -> Path | None:
    """The folder of the cache; None if it is off, as when the stages are being debugged."""
    if options.debug or options.gen_graphviz or options.export_code:
        return None
    chosen = options.cache_dir if options.cache_dir is not None else os.environ.get(VARIABLE)
    if chosen is None:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(base) / "torch_ttnn"
    return Path(chosen) if chosen else None


def key_of(graph_module: torch.fx.GraphModule, statics: Sequence[int], target: Target, options: TorchTtnnOption) -> str:
    """A hash of everything that determines the program."""
    digest = hashlib.sha256()

    def add(*items: Any) -> None:
        digest.update(repr(items).encode())

    device = target.typing  # the same for a card and an emulated device like it
    add(FORMAT, torch.__version__, _sources(), device.board, device.l1_small_size, list(statics))
    add(device.num_devices, *[getattr(options, name) for name in OPTIONS_THAT_MATTER])
    add(*users_sources())
    for module in (graph_module, *subgraphs(graph_module)):
        for node in module.graph.nodes:
            add(node.op, str(node.target), node.name, node.args, node.kwargs, _described(node.meta.get("val")))
            if node.op == "get_attr" and subgraph(node, module) is None:
                constant = operator.attrgetter(str(node.target))(module)
                add(constant.dtype, constant.shape)
                digest.update(constant.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _described(val: Any) -> Any:
    if isinstance(val, torch.Tensor):
        return tuple(val.shape), val.stride(), val.dtype
    if isinstance(val, tuple | list):
        return [_described(each) for each in val]
    return val if isinstance(val, int | float | bool | None) else str(val)


def _sources() -> str:
    """A hash of the sources, which changes with any file of the compiler or the emulator."""
    global _sources_digest
    if not _sources_digest:
        digest = hashlib.sha256()
        for package in (Path(__file__).parents[1], Path(ttnn_emulator.__file__).parent):
            digest.update("\n".join(sorted(_stamps(package))).encode())
        _sources_digest = digest.hexdigest()
    return _sources_digest


_sources_digest = ""


def _stamps(folder: str | Path) -> Iterator[str]:
    """Path, size and modification time of each Python file below a folder."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield f"{entry.path}:{status.st_size}:{status.st_mtime_ns}"
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _stamps(entry.path)


def load(root: Path, key: str, target: Target, captured: torch.fx.Graph) -> tuple[Lowered, dict[str, Any]] | None:
    """A cached program and its recorded facts; None if there is none. A corrupt file may raise any exception."""
    path = path_of(root, key)
    try:
        document = json.loads(unsealed(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    constants = {}
    if document["constants"]:
        content = path.with_suffix(".safetensors").read_bytes()
        _require_same(content, document["constants"])
        constants = safetensors.torch.load(content)
    return from_document(document["lowered"], constants, target, captured), document["facts"]


def store(root: Path, key: str, lowered: Lowered, facts: dict[str, Any]) -> None:
    """Cache a program; on a full or read-only disk the next process recompiles it."""
    try:
        document, constants = to_document(lowered)
    except NotSerialisable as error:
        log.info("a program is not cached on disk: %s", error)
        return
    if sum(each.nbytes for each in constants.values()) > MAX_CONSTANT_BYTES:
        log.info("a program is not cached on disk: its constants take more than %d MiB", MAX_CONSTANT_BYTES >> 20)
        return
    whole = {name: tensor.contiguous().clone() for name, tensor in constants.items()}
    content = safetensors.torch.save(whole) if whole else b""
    checksum = hashlib.sha256(content).hexdigest() if content else None
    path = path_of(root, key)
    try:
        root.mkdir(parents=True, exist_ok=True)
        if content:
            with replacing(path.with_suffix(".safetensors")) as temporary:
                temporary.write_bytes(content)
        with replacing(path) as temporary:
            text = json.dumps({"lowered": document, "constants": checksum, "facts": facts})
            temporary.write_text(sealed(text), encoding="utf-8")
        _prune(root)
    except OSError as error:
        log.warning("a program could not be cached in %s: %s", root, error)


def path_of(root: Path, key: str) -> Path:
    return root / f"{key}.jsonl"


def sealed(text: str) -> str:
    """A text below a line with its checksum, so that corruption is detected."""
    return json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest()}) + "\n" + text


def unsealed(text: str) -> str:
    """The text that was sealed; raises ValueError if it is corrupt.

    >>> unsealed(sealed("[1, 2]"))
    '[1, 2]'
    >>> unsealed(sealed("[1, 2]").replace("2]", "3]"))
    Traceback (most recent call last):
        ...
    ValueError: its checksum does not match
    """
    seal, _, rest = text.partition("\n")
    _require_same(rest.encode(), json.loads(seal)["sha256"])
    return rest


def _require_same(content: bytes, checksum: str) -> None:
    if hashlib.sha256(content).hexdigest() != checksum:
        raise ValueError("its checksum does not match")


def _prune(root: Path) -> None:
    """Delete the oldest programs beyond the limit; another process may be doing the same."""
    kept = list(root.glob("*.jsonl"))
    if len(kept) <= MOST_PROGRAMS:
        return
    for path in sorted(kept, key=_age)[: len(kept) - MOST_PROGRAMS]:
        path.unlink(missing_ok=True)
        path.with_suffix(".safetensors").unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
