"""`explain`, `profile` and `export_code` of a model on `ttnn`, and memory that is freed with the model."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

import torch_ttnn


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).to("ttnn")


def test_explain_counts_no_moves() -> None:
    with torch.no_grad():
        explanation = torch_ttnn.explain(_model(), torch.randn(4, 64).to("ttnn"))
    text = str(explanation)
    assert "0 host operations" in text
    assert "0 of them, 0 B, between host and device" in " ".join(text.split())
    assert "does not fit" not in text


def test_explain_predicts_the_time_of_dropout() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.3))
    text = str(torch_ttnn.explain(model, torch.randn(4, 64)))
    assert "does not fit" not in text
    assert "no predicted time" not in text


def test_profile_predicts_a_time() -> None:
    with torch.no_grad():
        assert "predicted times" in str(torch_ttnn.profile(_model(), torch.randn(4, 64).to("ttnn")))


def test_exported_code_uploads_its_inputs(tmp_path: Path) -> None:
    with torch.no_grad():
        exported = torch_ttnn.export_code(_model(), torch.randn(4, 64).to("ttnn"), tmp_path)
    command = [sys.executable, "-m", "ttnn_emulator", str(next(iter(exported)))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "PCC" in done.stdout


def test_a_deleted_model_frees_the_device() -> None:
    def allocated() -> int:
        gc.collect()
        return torch.ttnn.memory_allocated()

    before = allocated()
    model, x = _model(), torch.randn(4, 64).to("ttnn")
    compiled = torch.compile(model, backend="ttnn")
    for _ in range(3):
        with torch.no_grad():
            result = compiled(x)
        loss = compiled(x).sum()
        loss.backward()
    assert allocated() > before
    del result, loss, x, model, compiled
    assert allocated() == before
