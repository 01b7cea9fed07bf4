"""The sentence encoder all-MiniLM-L6-v2: BERT, mean pooling, and normalisation."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torch_ttnn.zoo.sources import Transformers, library
from torch_ttnn.zoo.trained.packages import MINILM, DataError
from torch_ttnn.zoo.weights import read

VOCABULARY = 30_522
WIDTH = 384
BERT = Transformers(
    "BertModel",
    "BertConfig",
    {
        "vocab_size": VOCABULARY,
        "hidden_size": WIDTH,
        "num_hidden_layers": 6,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
    },
)
UNUSED = ("pooler.", "embeddings.position_ids")  # in the file, but not in the encoder, which takes the mean


class SentenceEncoder(nn.Module):
    """One unit vector per text; texts with similar meanings have similar vectors."""

    def __init__(self) -> None:
        super().__init__()
        transformers: Any = library("transformers")
        self.bert = transformers.BertModel(BERT.configuration(), add_pooling_layer=False)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        tokens = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask[:, :, None].to(tokens.dtype)
        mean = (tokens * mask).sum(dim=1) / mask.sum(dim=1)
        return functional.normalize(mean, dim=1)


def load(model: nn.Module) -> None:
    """Load the published weights into a `SentenceEncoder`."""
    stored = read(_folder() / "model.safetensors")
    wanted = {f"bert.{name}": values for name, values in stored.items() if not name.startswith(UNUSED)}
    try:
        model.load_state_dict(wanted)
    except RuntimeError as error:  # torch lists the names
        raise DataError(f"the weights of the package {MINILM.name} do not fit: {error}") from error


def tokens(texts: Sequence[str], length: int) -> dict[str, torch.Tensor]:
    """Token ids for the encoder, truncated or padded to one length."""
    transformers: Any = library("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(_folder() / "tokenizer.json"), pad_token="[PAD]"
    )
    encoded = tokenizer(list(texts), padding="max_length", truncation=True, max_length=length, return_tensors="pt")
    return {name: encoded[name] for name in ("input_ids", "attention_mask")}


def _folder() -> pathlib.Path:
    folder = MINILM.find() / "model"
    if not folder.is_dir():
        raise DataError(f"the package {MINILM.name} has no folder {folder.name}: its version is unknown")
    return folder
