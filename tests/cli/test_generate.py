"""`torch-ttnn generate`: text, figures and errors, with random weights."""

from __future__ import annotations

import json

import pytest
import torch

from torch_ttnn.cli.command import main

NAME = "transformers:GPT2LMHeadModel"
SHORT = ("--random", "--prompt", "ab", "--new-tokens", "4")


@pytest.fixture(autouse=True)
def fresh_dynamo() -> None:
    torch._dynamo.reset()


def test_text_and_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", NAME, "--layers", "1", *SHORT]) == 0
    out, err = capsys.readouterr()
    tokens = out.splitlines()[0].split()
    assert len(tokens) == 4 and all(token.isdigit() for token in tokens)
    assert "measured here" in out and "predicted for the n150" in out and "4 new tokens; 2 programs" in out
    assert "weights are random (seed 0)" in err and "bytes of the prompt" in err


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", NAME, "--layers", "1", *SHORT, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert len(made["tokens"]) == 4 and made["weights"] == "random, seed 0"
    assert made["figures"]["new_tokens"] == 4 and made["figures"]["predicted_decode"]["board"] == "n150"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("resnet18", *SHORT), "those of transformers generate text"),
        (("transformers:BertModel", *SHORT), "does not generate"),
        ((NAME, "--random", "--prompt", ""), "the prompt is empty"),
        ((NAME, *SHORT, "--weights", "w.safetensors"), "exclude each other"),
    ],
)
def test_what_cannot_be_generated(arguments: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_the_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["generate", "--help"])
    text = capsys.readouterr().out
    assert "torch-ttnn generate openai-community/gpt2 --prompt" in text and "not of a card" in text
