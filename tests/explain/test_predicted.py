"""Predicted times in an explanation: in the text, the data and the page, labelled as predicted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.browser import opened, running
from tests.compiler.small_models import transformer
from torch_ttnn.capture.programs import backward_compiled
from torch_ttnn.explain import Explanation, explain
from torch_ttnn.perf.program_time import Mode, ModelTime, Unpredicted
from torch_ttnn.perf.time_text import duration_text
from ttnn_emulator.hardware.boards import board_names

X = torch.randn(2, 33, 64)


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    with torch.no_grad():
        return explain(transformer(1), X)


def host_op(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.linalg.inv_ex(torch.relu(x))[0])


def test_the_text_has_the_time_of_every_board(explanation: Explanation) -> None:
    text = str(explanation)
    for board in board_names():
        assert re.search(rf"{board}: fits \(.*\), [\d.]+ [µm]s, [\d,.]+/s\n", text), board
    assert "predicted, not measured" in text
    assert "where the time goes" in text
    time = explanation.times["n150"]
    assert f"predicted on the n150: {duration_text(time.device_ns)} on the device, {time.programs} programs" in text
    assert "uncalibrated" in text


def test_data_survive_json(explanation: Explanation) -> None:
    content = json.loads(json.dumps(explanation.to_json(), allow_nan=False))
    (program,) = content["programs"]
    for found in (content["predicted"], program["predicted"]):
        assert list(found["boards"]) == board_names()
        for board, time in found["boards"].items():
            own = explanation.times[board]
            assert time["kernels_ns"] == own.kernels_ns
            assert time["device_ns"] == own.device_ns
            assert set(time["modes"]) == {mode.value for mode in Mode}
            assert time["modes"]["traced"]["latency_ns"] == own.end_to_end(Mode.TRACED).latency_ns
            assert 0 < time["error"] < 1
            of_operations = [each["ns"][board] for each in found["operations"].values()]
            assert sum(of_operations) == pytest.approx(time["kernels_ns"])
    calls = program["predicted"]["calls"]
    assert sum(call["ns"]["n150"] for call in calls) == pytest.approx(explanation.times["n150"].kernels_ns)
    linear = next(call for call in calls if call["operation"] == "ttnn.linear")
    assert linear["cores"] > 0
    assert linear["bound"]


def test_no_silicon_calibrates_grayskull(explanation: Explanation) -> None:
    assert explanation.times["e150"].uncalibrated_share == 1
    assert explanation.times["e150"].error >= 0.6 - 1e-9
    assert explanation.times["n150"].error < explanation.times["e150"].error


def test_programs_add_up() -> None:
    with torch.enable_grad(), backward_compiled():
        found = explain(transformer(1), X)
    parts = [each["predicted"]["boards"]["n150"]["device_ns"] for each in found.to_json()["programs"]]
    assert [each.name for each in found.report.programs] == ["forward", "backward"]
    assert found.times["n150"].device_ns == pytest.approx(sum(parts))
    assert str(found).count("predicted on the n150") == 2


def test_operations_on_the_host_have_no_time() -> None:
    found = explain(host_op, torch.eye(64))
    text = " ".join(str(found).split())
    assert "without operations on the host, which have no predicted time" in text
    assert "cannot be traced and runs as is" in text
    assert "without operations" not in str(explain(torch.relu, X))
    assert "without operations" in found.to_html()


def test_a_program_with_nothing_on_the_device_has_no_time() -> None:
    found = explain(lambda x: torch.linalg.inv_ex(x)[0], torch.eye(32))
    assert "predicted, not measured" not in str(found)
    assert found.times["n150"].programs == 0
    json.dumps(found.to_json(), allow_nan=False)
    found.to_html()


def test_a_board_without_a_time_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch_ttnn.explain import explanation as module
    from torch_ttnn.perf.program_time import program_times

    def without(programs, boards):
        return [{**each, "p150": Unpredicted("p150", "no such core")} for each in program_times(programs, boards)]

    monkeypatch.setattr(module, "program_times", without)
    found = explain(torch.relu, X)
    assert "p150: no predicted time: no such core" in str(found)
    assert "GiB), no predicted time\n" in str(found)
    assert found.to_json()["predicted"]["boards"]["p150"] == {"unpredicted": "no such core"}
    found.to_html()


def test_a_model_that_does_not_fit_has_a_time() -> None:
    with torch.device("meta"):
        model = transformer(2, width=32768, heads=256)
    found = explain(model, torch.empty(1, 64, 32768, device="meta"))
    time = found.times["n150"]
    assert isinstance(time, ModelTime)
    assert time.kernels_ns > 32e9 / 288  # nanoseconds to read 32 GB of weights at the bandwidth of the data sheet
    assert re.search(r"n150: does not fit \([^)]*\)\n", str(found))
    assert "n150: does not fit" in str(found)


def test_the_page_shows_times_in_a_browser(explanation: Explanation, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    explanation.to_html(path)
    time = explanation.times["n150"]
    with running() as browser, opened(browser, path) as tab:
        assert "predicted, not measured" in tab.inner_text("header")
        assert duration_text(time.end_to_end(Mode.TRACED).latency_ns) in tab.inner_text("header .cards")
        boards = tab.get_by_role("region", name="Predicted time by board", exact=True)
        assert boards.locator("tbody td:first-child").all_inner_texts() == board_names()
        row = boards.locator("tbody tr", has_text="n150").locator("td").all_inner_texts()
        assert row[1:3] == [str(time.programs), duration_text(time.kernels_ns)]
        goes = tab.get_by_role("region", name="Where the predicted time goes", exact=True)
        assert set(goes.locator("tbody td:first-child").all_inner_texts()) == {
            name for name, (_, ns) in time.by_operation().items() if ns
        }
        steps = tab.get_by_role("region", name="Steps", exact=True)
        tab.get_by_label("filter Steps").fill("ttnn.linear")
        shown = steps.locator("tbody tr").first.locator("td").all_inner_texts()
        linear = next(call for call in time.parts[0].calls if call.operation == "ttnn.linear")
        assert duration_text(linear.kernels_ns) in shown
        steps.locator("tbody tr").first.click()
        tip = tab.evaluate("program.nodes[view.pinned].time")
        assert tip.startswith(f"predicted {duration_text(linear.kernels_ns)} ±")
        tab.evaluate("showNodeTip(program.nodes[view.pinned], 10, 10)")
        assert tip in tab.inner_text("#tip")
        tab.evaluate("document.getElementById('tip').hidden = true")
