"""Opening a card: messages if there is none, it is in use, or the library does not match."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest

from torch_ttnn import devices
from torch_ttnn.devices import card

# Messages of ttnn 0.81.1 and its driver (strings of libtt-umd.so and libtt_metal.so), and parts of ours.
SAID = {
    "TT_FATAL @ a.cpp:129: num_chips > 0\ninfo:\nNo chips detected in the cluster\nbacktrace:\n --- x": "no card",
    "Firmware bundle version 18.2.0 on device 0 is older than the minimum compatible version 18.10.0": "tt-flash",
    "Firmware bundle version mismatch for device 1: expected 19.0.0, got 18.4.0.": "firmware",
    "Running UMD requires KMD version 2.0.0 or newer.": "Update the driver",
    "This usually means another process is already holding the sysmem NOC address space": "in use by another process",
    "Could not open /dev/tenstorrent/0: Permission denied": "may not open the card",
    "SiliconSysmemManager::init_hugepage: no huge page mount found for hugepage_size: 1G.": "huge pages",
    "Timed out waiting for ETH heartbeat on device ASIC ID: 3": "does not answer",
    "an unknown error": "could not open the card",
}


class Library(types.ModuleType):
    """A library that finds one card and cannot open it."""

    def __init__(self, error: str) -> None:
        super().__init__("ttnn")
        self.error = error

    def GetNumAvailableDevices(self) -> int:
        return 1

    def open_device(self, **settings: int) -> None:
        raise RuntimeError(self.error)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch_ttnn.devices.target._opened", {})
    monkeypatch.setattr(card, "check_version", lambda: None)


@pytest.mark.parametrize("said", SAID, ids=SAID.values())
def test_failures_are_a_sentence_and_name_the_emulator(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ttnn", Library(said))
    with pytest.raises(card.CardError) as raised:
        devices.resolve("ttnn")
    message = str(raised.value)
    assert SAID[said] in message
    assert "TORCH_TTNN_DEVICE=emulator" in message
    assert "backtrace" not in message and "\n" not in message


def test_no_such_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ttnn", Library(""))
    with pytest.raises(card.CardError, match="there is no card 3: the library finds 1"):
        devices.resolve("ttnn:3")


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ttnn", None)
    with pytest.raises(card.CardError, match=r"pip install ttnn==.*TORCH_TTNN_DEVICE=emulator"):
        devices.resolve("ttnn")


@pytest.mark.parametrize("name", ["ttnn:first", "cuda", "ttnn:-1"])
def test_names_that_mean_no_device(name: str) -> None:
    with pytest.raises(ValueError, match="no device is called"):
        devices.resolve(name)


def test_without_a_driver_the_library_is_not_queried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It would log a page about a card that was not requested."""
    for name in (*card.STAND_INS, devices.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(card, "DEVICE_FILES", tmp_path / "none")
    monkeypatch.setattr(card, "library", lambda: pytest.fail("the library was imported"))
    assert not card.is_present()
    assert devices.resolve().is_emulator


def test_a_driver_with_a_card_that_fails_leads_to_the_emulator_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Library):
        def GetNumAvailableDevices(self) -> int:
            raise RuntimeError("Running UMD requires KMD version 2.0.0 or newer.")

    (tmp_path / "0").touch()
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    monkeypatch.setattr(card, "DEVICE_FILES", tmp_path)
    monkeypatch.setattr(card.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(card, "library", lambda: Broken(""))
    with caplog.at_level(logging.WARNING, logger="torch_ttnn"):
        assert devices.resolve().is_emulator
    assert "Update the driver" in caplog.text and "emulator runs instead" in caplog.text


def test_a_process_that_uses_the_card_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "0").touch()
    monkeypatch.setattr(card, "DEVICE_FILES", tmp_path)
    monkeypatch.setitem(sys.modules, "ttnn", Library("Device or resource busy"))
    holder = subprocess.Popen(
        [sys.executable, "-c", f"f = open({str(tmp_path / '0')!r}); print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with caplog.at_level(logging.WARNING, logger="torch_ttnn"), pytest.raises(card.CardError, match="in use"):
            devices.resolve("ttnn")
    finally:
        holder.kill()
    assert f"card 0 is in use by process {holder.pid}" in caplog.text


def test_only_an_unknown_release_causes_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(card.metadata, "version", lambda name: "0.99.0")
    with pytest.warns(UserWarning, match=r"check --ttnn 0\.99\.0"):
        card.check_version()
    monkeypatch.setattr(card.metadata, "version", lambda name: card.SUPPORTED[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        card.check_version()


@pytest.mark.skipif(card.is_mock(), reason="is run on a mock card already")
def test_the_real_library_where_its_environment_exists() -> None:
    """A part of `make card`, on machines that have run it."""
    from ttnn_emulator.api.recorded import ttnn_version
    from ttnn_emulator.conformance import environment

    python = environment.existing_python(ttnn_version())
    probe = "import torch, numba, pytest, hypothesis"
    if not python or subprocess.run([python, "-c", probe], capture_output=True).returncode:
        pytest.skip("no Python has the real ttnn with torch: `make card` makes one")
    chosen = "one_line or changed_weights or changing_shapes or kept or counterpart"
    command = [sys.executable, "-m", "ttnn_emulator.conformance", "run", "--", "-m", "pytest", "-q"]
    done = subprocess.run(
        [*command, "tests/card/test_paths.py", "-k", chosen],
        env={**os.environ, environment.PYTHON_VARIABLE: python},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_missing_card_is_reported_without_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in card.STAND_INS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(card, "DEVICE_FILES", tmp_path / "tenstorrent")
    monkeypatch.setattr(card.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(card.CardError, match="pip install ttnn=="):
        card.require_likely()
    monkeypatch.setattr(card.importlib.util, "find_spec", lambda name: types.SimpleNamespace())
    with pytest.raises(card.CardError, match="no card was found: there is no"):
        card.require_likely()
    (tmp_path / "tenstorrent").mkdir()
    (tmp_path / "tenstorrent" / "0").touch()
    card.require_likely()
