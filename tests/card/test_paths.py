"""Common uses of a card, on the real library with a mock one; its values are zeros and are not compared."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import nn

import torch_ttnn
from tests.card.received_calls import ReceivedCalls, assert_same
from tests.compiler.small_models import cnn, transformer
from torch_ttnn import TorchTtnnOption, devices
from torch_ttnn.devices import card

pytestmark = pytest.mark.skipif(
    not card.is_stand_in(), reason="needs the real ttnn and a mock card: run by `make card`"
)
MODELS = {"cnn": (cnn, (2, 3, 32, 32)), "transformer": (transformer, (2, 17, 64))}


def board() -> str:
    return Path(os.environ[card.STAND_INS[0]]).stem


def on_card(model, **options):
    return torch.compile(model, backend="ttnn", options={"device": "ttnn", **options})


def on_board(name: str):
    return pytest.mark.skipif(card.is_mock() and board() != name, reason=f"is about a {name}: run by `make card`")


def test_the_counterpart_is_like_the_card(target: devices.Target) -> None:
    import ttnn

    import ttnn_emulator

    assert target.name == f"mock {board()}"
    grid = target.device.compute_with_storage_grid_size()
    assert (grid.x, grid.y) == target.typing.board.grid
    for kind in ("DRAM", "L1", "L1_SMALL", "TRACE"):
        real = ttnn.get_memory_view(target.device, getattr(ttnn.BufferType, kind))
        emulated = ttnn_emulator.get_memory_view(target.typing, getattr(ttnn_emulator.BufferType, kind))
        assert (real.num_banks, real.total_bytes_per_bank) == (emulated.num_banks, emulated.total_bytes_per_bank), kind


@pytest.mark.parametrize("settings", [{}, {"precision": "float32"}, {"weights": "bfloat8_b"}], ids=str)
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_inference_and_changed_weights(name: str, settings: dict, target: devices.Target) -> None:
    make, shape = MODELS[name]
    model, x = make(), torch.randn(shape)
    compiled, want = on_card(model, **settings), model(x)
    received = [ReceivedCalls(target) for _ in range(3)]
    for number, each in enumerate(received):
        if number == 2:
            next(model.parameters()).mul_(2)
        with target.listening(each):
            got = compiled(x)
        assert_same(got, want if number < 2 else model(x))
        assert not each.foreign
    first, warm, changed = (each.paths for each in received)
    assert len(first) > len(changed) > len(warm)


@torch.no_grad()
def test_the_environment_variable(monkeypatch: pytest.MonkeyPatch, target: devices.Target) -> None:
    monkeypatch.setenv(devices.VARIABLE, "ttnn")
    options = TorchTtnnOption()
    torch.compile(nn.Linear(8, 4), backend="ttnn", options=options)(torch.ones(2, 8))
    assert options.programs[0].target is target


@torch.no_grad()
def test_an_available_card_is_used_by_default(monkeypatch: pytest.MonkeyPatch, target: devices.Target) -> None:
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    assert devices.resolve() is target


@torch.no_grad()
def test_host_operations_and_constants() -> None:
    compiled = on_card(lambda x: torch.special.bessel_j0(x * 2) + torch.arange(32))
    assert compiled(torch.ones(4, 32)).shape == (4, 32)


@torch.no_grad()
def test_changing_shapes() -> None:
    compiled = torch.compile(nn.Linear(32, 8), backend="ttnn", options={"device": "ttnn"}, dynamic=True)
    for rows in (3, 40, 7, 3):
        assert compiled(torch.ones(rows, 32)).shape == (rows, 8)


def test_training() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(512, 4))
    compiled, optimizer = on_card(model), torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        compiled(torch.randn(2, 3, 8, 8)).sum().backward()
        optimizer.step()
    assert all(each.grad is not None and each.grad.shape == each.shape for each in model.parameters())


@torch.no_grad()
def test_two_models_and_threads() -> None:
    wide, narrow = on_card(nn.Linear(32, 64)), on_card(nn.Linear(32, 16))
    x = torch.ones(4, 32)
    wide(x), narrow(x)
    shapes: list[tuple[int, ...]] = []

    def work() -> None:
        with torch.no_grad():
            shapes.extend([tuple(wide(x).shape), tuple(narrow(x).shape)] * 5)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(shapes) == [(4, 16)] * 15 + [(4, 64)] * 15


@pytest.mark.parametrize("first", ["emulator", "ttnn"])
@torch.no_grad()
def test_programs_kept_for_one_kind_of_device_are_read_for_the_other(
    first: str, tmp_path: Path, target: devices.Target, caplog: pytest.LogCaptureFixture
) -> None:
    emulator = f"emulator:{board()}"
    order = (emulator, "ttnn") if first == "emulator" else ("ttnn", emulator)
    model, x = transformer(), torch.randn(2, 17, 64)
    found = []
    for device in order:
        torch._dynamo.reset()
        options = TorchTtnnOption(device=device, cache_dir=str(tmp_path))
        torch.compile(model, backend="ttnn", options=options)(x)
        found.append((options.programs[0].code, "lower" in options.programs[0].seconds))
    (written, was_lowered), (read, was_lowered_again) = found
    assert written == read
    assert was_lowered and not was_lowered_again
    assert len(list(tmp_path.glob("*.jsonl"))) == 1


@torch.no_grad()
def test_explain_check_and_export(tmp_path: Path) -> None:
    model, x = cnn(), torch.randn(2, 3, 32, 32)
    explained = torch_ttnn.explain(model, x, options={"device": "ttnn"})
    assert f"for the mock {board()}" in str(explained)
    script = torch_ttnn.export_code(model, x, tmp_path, options={"device": "ttnn"}, mode="profiling")[0]
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]


@torch.no_grad()
def test_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTNN_PYTHON", sys.executable)
    found = torch_ttnn.check(cnn(), torch.randn(2, 3, 32, 32), options={"device": "ttnn"})
    assert found.ok, str(found)


@torch.no_grad()
def test_a_trace_is_not_tried_on_a_mock_card(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="torch_ttnn"):
        assert on_card(nn.Linear(8, 4), trace=True)(torch.ones(2, 8)).shape == (2, 4)
    assert "cannot capture traces" in caplog.text


def test_there_is_no_such_card() -> None:
    with pytest.raises(card.CardError, match=r"there is no card 7.*TORCH_TTNN_DEVICE=emulator"):
        devices.resolve("ttnn:7")


@on_board("n300")
@torch.no_grad()
def test_both_chips_of_an_n300() -> None:
    model, x = cnn(), torch.randn(1, 3, 32, 32)
    for number in (0, 1):
        options = TorchTtnnOption(device=f"ttnn:{number}")
        torch._dynamo.reset()
        assert torch.compile(model, backend="ttnn", options=options)(x).shape == (1, 10)
        assert options.programs[0].target.device.get_device_ids() == [number]


# -- separate processes: a chip that is opened twice in one process is open once for the library ---------------------


def run_script(text: str, folder: Path) -> subprocess.CompletedProcess:
    script = folder / "script.py"
    script.write_text(text)
    environment = {**os.environ, devices.VARIABLE: "ttnn"}
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=folder, env=environment)


ONE_LINE = """
import torch, torch_ttnn
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()), backend="ttnn")
for _ in range(3):
    out = model(torch.ones(2, 32, requires_grad=True))
    out.sum().backward()
print(tuple(out.shape))
"""

OWN_DEVICE = """
import torch, torch_ttnn, ttnn
device = ttnn.open_device(device_id=0, l1_small_size=16384)
options = torch_ttnn.TorchTtnnOption(device=device)
model = torch.compile(torch.nn.Conv2d(3, 8, 3), backend="ttnn", options=options)
with torch.no_grad():
    print(tuple(model(torch.ones(1, 3, 8, 8)).shape), options.programs[0].target.typing.l1_small_size)
    ttnn.close_device(device)
    for attempt in (lambda: model(torch.ones(1, 3, 8, 8)), lambda: torch_ttnn.devices.resolve(device)):
        try:
            attempt()
        except RuntimeError as error:
            print("closed" in str(error))
"""


def test_a_script_of_one_line_ends_quietly(tmp_path: Path) -> None:
    done = run_script(ONE_LINE, tmp_path)
    assert (done.returncode, done.stdout) == (0, "(2, 32)\n"), done.stderr[-2000:]
    assert "nanobind" not in done.stderr and "Error" not in done.stderr


def test_a_device_opened_by_the_user(tmp_path: Path) -> None:
    done = run_script(OWN_DEVICE, tmp_path)
    said = [line for line in done.stdout.splitlines() if "TT_THROW" not in line]
    assert (done.returncode, said) == (0, ["(1, 8, 6, 6) 16384", "True", "True"]), done.stderr[-2000:]
    assert "nanobind" not in done.stderr
