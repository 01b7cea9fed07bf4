"""Text encoders: BERT and related models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import Padded, Segments, Tokens, takes
from torch_ttnn.zoo.sources import Transformers

TWO_LAYERS = "2 layers in place of {}."

BERT_LARGE = ModelEntry(
    name="bert-large-qa",
    family="bert",
    task="question answering",
    architecture=Transformers(
        "BertForQuestionAnswering",
        "BertConfig",
        {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
        hub="google-bert/bert-large-uncased-whole-word-masking-finetuned-squad",
    ),
    feed=takes(
        input_ids=Tokens(30522, 384, lowest=999), attention_mask=Padded(384), token_type_ids=Segments(384)
    ),
)  # fmt: skip

DISTILBERT = ModelEntry(
    name="distilbert",
    family="distilbert",
    task="question answering",
    architecture=Transformers(
        "DistilBertForQuestionAnswering",
        "DistilBertConfig",
        hub="distilbert/distilbert-base-uncased-distilled-squad",
    ),
    feed=takes(input_ids=Tokens(30522, 128, lowest=999), attention_mask=Padded(128)),
)

ROBERTA = ModelEntry(
    name="roberta",
    family="roberta",
    task="masked language modelling",
    architecture=Transformers(
        "RobertaForMaskedLM",
        "RobertaConfig",
        {
            "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5,
            "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
        },
        hub="FacebookAI/roberta-base",
    ),
    feed=takes(input_ids=Tokens(50265, 128), attention_mask=Padded(128)),
)  # fmt: skip

XLM_ROBERTA = ModelEntry(
    name="xlm-roberta",
    family="roberta",
    task="masked language modelling",
    architecture=Transformers(
        "XLMRobertaForMaskedLM",
        "XLMRobertaConfig",
        {"vocab_size": 250002, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
        hub="FacebookAI/xlm-roberta-base",
    ),
    feed=takes(input_ids=Tokens(250001, 128), attention_mask=Padded(128)),
)

DPR = ModelEntry(
    name="dpr-reader",
    family="dpr",
    task="question answering",
    architecture=Transformers("DPRReader", "DPRConfig", hub="facebook/dpr-reader-single-nq-base"),
    feed=takes(input_ids=Tokens(30522, 128, lowest=999), attention_mask=Padded(128)),
    batch=4,  # multiple choice: one of the passages is chosen
)

ELECTRA = ModelEntry(
    name="electra-small",
    family="electra",
    task="token classification",
    architecture=Transformers("ElectraForTokenClassification", "ElectraConfig", {"num_labels": 9}),
    feed=takes(input_ids=Tokens(30522, 128, lowest=999), attention_mask=Padded(128)),
)

ALBERT = ModelEntry(
    name="albert",
    family="albert",
    task="masked language modelling",
    architecture=Transformers(
        "AlbertForMaskedLM",
        "AlbertConfig",
        {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "num_hidden_layers": 12},
        hub="albert/albert-base-v2",
    ),
    feed=takes(input_ids=Tokens(30000, 128), attention_mask=Padded(128)),
)

# Version 2 of ALBERT has no dropout; its sizes share one layer of weights each.
ALBERT_SIZES: dict[str, dict[str, Any]] = {
    "large": {"hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096, "num_hidden_layers": 24},
    "xlarge": {"hidden_size": 2048, "num_attention_heads": 16, "intermediate_size": 8192, "num_hidden_layers": 24},
    "xxlarge": {"hidden_size": 4096, "num_attention_heads": 64, "intermediate_size": 16384, "num_hidden_layers": 12},
}


def albert(size: str) -> ModelEntry:
    """A larger ALBERT, of published size."""
    architecture = Transformers(
        "AlbertForMaskedLM", "AlbertConfig", ALBERT_SIZES[size], hub=f"albert/albert-{size}-v2"
    )  # fmt: skip
    return replace(ALBERT, name=f"albert-{size}", architecture=architecture)


def albert_for(name: str, task: str, model: str, hub: str = "", batch: int = 1, **settings: Any) -> ModelEntry:
    """The base ALBERT with the head of another task."""
    base = ALBERT.architecture
    assert isinstance(base, Transformers)
    architecture = Transformers(model, base.config, {**base.settings, **settings}, hub=hub)
    return replace(ALBERT, name=name, task=task, architecture=architecture, batch=batch)


PERCEIVER = ModelEntry(
    name="perceiver-mlm",
    family="perceiver",
    task="masked language modelling",
    architecture=Transformers(
        "PerceiverForMaskedLM",
        "PerceiverConfig",
        {"qk_channels": 256, "v_channels": 1280, "initializer_range": 0.04},
        hub="deepmind/language-perceiver",
    ),
    feed=takes(inputs=Tokens(262, 2048, lowest=6), attention_mask=Padded(2048)),
)
PERCEIVER_2L = PERCEIVER.resized(
    "perceiver-mlm-2L",
    "64 latents of 256 channels in place of 256 of 1280, 2 self-attentions a block in place of 26.",
    d_latents=256,
    num_latents=64,
    d_model=256,
    num_self_attends_per_block=2,
    v_channels=None,
    initializer_range=0.08,  # with the usual 0.02, attention over so few channels averages all tokens
)

ENTRIES = (
    BERT_LARGE,
    replace(BERT_LARGE.resized("bert-large-qa-2L", TWO_LAYERS.format(24), num_hidden_layers=2), train=True),
    DISTILBERT,
    replace(DISTILBERT.resized("distilbert-2L", TWO_LAYERS.format(6), n_layers=2), train=True),
    replace(
        DISTILBERT,
        name="distilbert-features",
        task="text features",
        architecture=Transformers("DistilBertModel", "DistilBertConfig", hub="distilbert/distilbert-base-uncased"),
    ),
    DPR,
    ELECTRA,
    ROBERTA,
    replace(ROBERTA.resized("roberta-2L", TWO_LAYERS.format(12), num_hidden_layers=2), train=True),
    XLM_ROBERTA,
    ALBERT,
    replace(ALBERT.resized("albert-2L", TWO_LAYERS.format(12), num_hidden_layers=2), train=True),
    albert("large"),
    albert("xlarge"),
    albert("xxlarge"),
    albert_for("albert-tokens", "token classification", "AlbertForTokenClassification", num_labels=2),
    albert_for(
        "albert-imdb",
        "text classification",
        "AlbertForSequenceClassification",
        "textattack/albert-base-v2-imdb",
        batch=4,  # one text has two scores, whose correlation is meaningless
    ),
    albert_for("albert-squad2", "question answering", "AlbertForQuestionAnswering", "twmkn9/albert-base-v2-squad2"),
    PERCEIVER,
    PERCEIVER_2L,
)
