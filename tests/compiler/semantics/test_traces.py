"""Programs whose trace does not fit its region."""

from __future__ import annotations

import torch
from torch import nn

import ttnn_emulator
from tests.compiler.semantics.compiled_models import WIDTH, assert_near, compiled


@torch.no_grad()
def test_a_program_whose_trace_does_not_fit_runs_without_one(caplog):
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
    with ttnn_emulator.open_device(device_id=0, l1_small_size=16384, trace_region_size=64) as device:
        function = compiled(model, device=device)
        for _ in range(3):
            x = torch.randn(3, WIDTH)
            assert_near(function(x), model(x))
        assert caplog.text.count("without a trace") == 1
        assert "trace region of 64 B" in caplog.text
