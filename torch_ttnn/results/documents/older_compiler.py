"""The results that the older compiler for this hardware published, and how our rows compare with them.

`older_compiler.csv` has its counts from the README of github.com/tenstorrent/pytorch2.0_ttnn: the status
("e2e" if everything runs on the device, "compiled" if operations stay on the host, "traced" if it could not be
compiled), ATen operations before and after, with the numbers of distinct ones, and moves to and from the device.
"""

from __future__ import annotations

import csv
import enum
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from torch_ttnn.results.record import FAILS, Row

E2E, COMPILED, TRACED = "e2e", "compiled", "traced"


@dataclass(frozen=True)
class PeerRow:
    """A row of the older compiler; models that it could not compile have no counts."""

    model: str
    mode: str  # eval, train
    status: str
    batch: int | None
    ops_before: int
    ops_before_unique: int
    ops_remaining: int | None
    ops_remaining_unique: int | None
    moves: int | None

    @property
    def key(self) -> str:
        """Unique name of a row, like `Row.key`."""
        return self.model if self.mode == "eval" else f"{self.model} ({self.mode})"


@dataclass(frozen=True)
class Link:
    """Our model for one of theirs, and how the two differ."""

    entry: str
    note: str = ""


ONE_STEP = "one forward pass in place of a whole generation"

# Models with another name in our zoo; those with the same name (timm's without a tag) are not listed.
LINKS: Mapping[str, Link] = {
    "Autoencoder (conv)": Link("autoencoder-conv"),
    "Autoencoder (linear)": Link("autoencoder-linear"),
    "BERT": Link("bert-large-qa", "batch 1 in place of 8"),
    "Bloom": Link("bloom-1b1"),
    "CLIP": Link("clip", "batch 4 in place of 1"),
    "DETR": Link("detr", "the same network as transformers builds it, on 800 × 1066 pixels"),
    "DINOv2": Link("dinov2-base"),
    "DPR": Link("dpr-reader", "batch 4 in place of 1"),
    "FLAN-T5": Link("flan-t5-small", ONE_STEP),
    "Falcon-7B": Link("falcon-7b-2L", "2 layers in place of 32: all of them would need 28 GB"),
    "GLPN-KITTI": Link("glpn-kitti"),
    "GPT-2": Link("gpt2-imdb", "batch 4 in place of 1"),
    "GPTNeo": Link("gptneo-125M", ONE_STEP),
    "GaussianSplatting": Link("gaussian-splatting", "a scene of 512 Gaussians, with no mask that depends on values"),
    "HardNet": Link("hardnet68"),
    "Llama": Link("llama-7b-2L", "2 layers in place of 32: all of them would need 27 GB"),
    "Mnist": Link("mnist-cnn"),
    "MobileNetSSD": Link("ssdlite320_mobilenet_v3_large", "the same network"),
    "MobileNetV2": Link("mobilenetv2"),
    "OPT": Link("opt-350m", ONE_STEP),
    "OpenPose V2": Link("lightweight-openpose"),
    "Perceiver IO": Link("perceiver-mlm"),
    "ResNet18": Link("resnet18"),
    "ResNet50": Link("resnet50", "batch 1 in place of 4"),
    "RoBERTa": Link("xlm-roberta"),
    "SegFormer": Link("segformer-b0"),
    "Stable Diffusion V2": Link("stable-diffusion-unet", "the denoising network in both"),
    "U-Net": Link("unet-brain", "the same network"),
    "Unet-brain": Link("unet-brain"),
    "Unet-carvana": Link("unet-carvana"),
    "ViLT": Link("vilt-vqa"),
    "Whisper": Link("whisper-small", ONE_STEP),
    "YOLOS": Link("yolos-tiny"),
    "YOLOv3": Link("yolov3"),
    "YOLOv5": Link("yolov5s"),
    "albert/albert-base-v2": Link("albert"),
    "albert/albert-base-v2-classification": Link("albert-tokens"),
    "albert/albert-large-v2": Link("albert-large"),
    "albert/albert-xlarge-v2": Link("albert-xlarge"),
    "albert/albert-xxlarge-v2": Link("albert-xxlarge"),
    "codegen": Link("codegen-350M", ONE_STEP),
    "distilbert-base-uncased": Link("distilbert-features"),
    "facebook/deit-base-patch16-224": Link("vit-base", "the same network, built as a ViT in both"),
    "mobilenet_v2": Link("mobilenetv2"),
    "speecht5-tts": Link("speecht5-tts", ONE_STEP),
    "t5-base": Link("t5-base", ONE_STEP),
    "t5-large": Link("t5-large", ONE_STEP),
    "t5-small": Link("t5-small", ONE_STEP),
    "textattack/albert-base-v2-imdb": Link("albert-imdb", "batch 4 in place of 1"),
    "twmkn9/albert-base-v2-squad2": Link("albert-squad2"),
}

# Keys of their rows that we have no counterpart for, with the reason.
LEFT_OUT: Mapping[str, str] = {}


class Verdict(str, enum.Enum):
    """How our count compares with theirs."""

    BETTER = "better"
    EQUAL = "equal"
    WORSE = "worse"


@dataclass(frozen=True)
class Comparison:
    """Our row compared with theirs: host operations, and moves within the program."""

    host_ops: Verdict
    moves: Verdict

    @property
    def is_worse(self) -> bool:
        return Verdict.WORSE in (self.host_ops, self.moves)


@functools.cache
def peer_rows() -> tuple[PeerRow, ...]:
    """All rows that the older compiler published.

    >>> [row.moves for row in peer_rows() if row.key == "densenet121"]
    [597]
    """
    content = resources.files(__package__).joinpath("older_compiler.csv").read_text(encoding="utf-8")
    return tuple(_row(record) for record in csv.DictReader(content.splitlines()))


def _row(record: Mapping[str, str]) -> PeerRow:
    counts = {name: int(text) if text else None for name, text in record.items() if name not in TEXTS}
    return PeerRow(**{name: record[name] for name in TEXTS}, **counts)  # type: ignore[arg-type]


TEXTS = ("model", "mode", "status")


def link(peer: PeerRow) -> Link | None:
    """Our model for one of their rows, in the same mode; None if there is none, for a reason in `LEFT_OUT`.

    >>> link(peer_rows()[0]).entry
    'autoencoder-linear'
    """
    if peer.key in LEFT_OUT:
        return None
    return LINKS.get(peer.model, Link(peer.model.partition(".")[0]))


def peers_of(row: Row) -> list[PeerRow]:
    """The rows of theirs that correspond to ours: none, one, or two for models that they list twice."""
    return _by_entry().get((row.model, row.mode), [])


@functools.cache
def _by_entry() -> dict[tuple[str, str], list[PeerRow]]:
    found: dict[tuple[str, str], list[PeerRow]] = {}
    for peer in peer_rows():
        if (ours := link(peer)) is not None:
            found.setdefault((ours.entry, peer.mode), []).append(peer)
    return found


def compare(row: Row, peer: PeerRow) -> Comparison:
    """Fewer is better. A model that does not run is worse than any that does.

    >>> compare(Row("densenet121", status="device"), peer_rows()[19]).moves.value
    'better'
    """
    if peer.ops_remaining is None or peer.moves is None:
        verdict = Verdict.EQUAL if row.status == FAILS else Verdict.BETTER
        return Comparison(verdict, verdict)
    if row.status == FAILS:
        return Comparison(Verdict.WORSE, Verdict.WORSE)
    return Comparison(
        host_ops=_verdict(row.ops_remaining, peer.ops_remaining), moves=_verdict(row.crossings_within, peer.moves)
    )


def _verdict(ours: int, theirs: int) -> Verdict:
    if ours == theirs:
        return Verdict.EQUAL
    return Verdict.BETTER if ours < theirs else Verdict.WORSE
