"""Models that read a text as a whole: BERT and its relatives."""

from __future__ import annotations

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

PERCEIVER = ModelEntry(
    name="perceiver-mlm-2L",
    family="perceiver",
    task="masked language modelling",
    architecture=Transformers(
        "PerceiverForMaskedLM",
        "PerceiverConfig",
        {
            "d_latents": 256, "num_latents": 64, "d_model": 256, "num_self_attends_per_block": 2, "qk_channels": 256,
            "initializer_range": 0.08,  # at the usual 0.02 the attention of so few channels is an average of all tokens
        },
    ),
    feed=takes(inputs=Tokens(262, 2048, lowest=6), attention_mask=Padded(2048)),
    reduced="64 latents of 256 channels in place of 256 of 1280, 2 self-attentions a block in place of 26.",
)  # fmt: skip

ENTRIES = (
    BERT_LARGE,
    BERT_LARGE.resized("bert-large-qa-2L", TWO_LAYERS.format(24), num_hidden_layers=2),
    DISTILBERT,
    DISTILBERT.resized("distilbert-2L", TWO_LAYERS.format(6), n_layers=2),
    ROBERTA,
    ROBERTA.resized("roberta-2L", TWO_LAYERS.format(12), num_hidden_layers=2),
    ALBERT,
    ALBERT.resized("albert-2L", TWO_LAYERS.format(12), num_hidden_layers=2),
    PERCEIVER,
)
