"""`torch_ttnn.profile`: its rows, sums, text, files and page; and profiles of scripts."""

from __future__ import annotations

import csv
import io
import json
import pathlib

import pytest
import torch
from torch import nn

import torch_ttnn
import ttnn_emulator as ttnn
from tests.browser import opened, running
from tests.compiler.small_models import transformer
from torch_ttnn.perf import analysis
from torch_ttnn.perf.advice import Accuracy, Kind
from torch_ttnn.perf.profile import Profile, profile
from torch_ttnn.perf.program_time import Mode, program_times
from torch_ttnn.perf.script import profile_script
from torch_ttnn.perf.text import SHOWN
from ttnn_emulator.profiling import device_log, sheet
from ttnn_emulator.timing.dispatch import DISPATCH

HEIGHT = ttnn.TensorMemoryLayout.HEIGHT_SHARDED


@pytest.fixture(scope="module")
def found() -> Profile:
    with torch.no_grad():
        return profile(transformer(1), torch.randn(2, 33, 64))


class Convolutions(nn.Module):
    """Convolutions in a row, and one operation that stays on the host."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(16, 32, 3, padding=1)
        self.second = nn.Conv2d(32, 32, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu())


def test_it_is_a_public_name_with_the_arguments_of_explain() -> None:
    with torch.no_grad():
        by_position = torch_ttnn.profile(nn.Linear(64, 64), torch.ones(32, 64))
        by_name = torch_ttnn.profile(nn.Linear(64, 64), args=(torch.ones(32, 64),), device="emulator:p150")
    assert by_position.board.name == "n150" and by_name.board.name == "p150"
    assert [row["OP CODE"] for row in by_position.table] == ["MatmulDeviceOperation"]
    assert by_name.kernels_ns != by_position.kernels_ns


def test_a_model_without_values_has_the_same_times() -> None:
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 64))
    with torch.no_grad():
        real = profile(model, torch.ones(32, 64))
        meta = profile(model.to("meta"), torch.ones(32, 64, device="meta"))
    assert meta.kernels_ns == real.kernels_ns and meta.kernels_ns > 0


def test_the_sum_is_that_of_the_programs_time() -> None:
    """The same number as `explain` shows."""
    with torch.no_grad():
        explained = torch_ttnn.explain(transformer(1), torch.randn(2, 33, 64))
        mine = profile(transformer(1), torch.randn(2, 33, 64))
    [times] = program_times(explained.programs, ["n150"])
    assert mine.kernels_ns == pytest.approx(sum(call.kernels_ns for call in times["n150"].calls))
    for mode in Mode:
        assert mine.end_to_end.times[mode].latency_ns == pytest.approx(times["n150"].end_to_end(mode).latency_ns)


def test_groups_have_all_of_the_time(found: Profile) -> None:
    for group_by in (analysis.by_operation, analysis.by_program, analysis.by_module, analysis.by_source):
        groups = group_by(found.programs)
        assert sum(group.kernel_ns for group in groups) == pytest.approx(found.kernels_ns)
        assert sum(group.count for group in groups) == len(found.programs)
        assert [group.kernel_ns for group in groups] == sorted((group.kernel_ns for group in groups), reverse=True)


def test_rows_name_the_line_and_the_module_of_the_model(found: Profile) -> None:
    rows = {row["OPERATION"]: row for row in found.table if row["OP TYPE"] == "tt_dnn_device"}
    assert "small_models.py:" in rows["ttnn.linear"]["SOURCE"]
    assert rows["ttnn.linear"]["MODULE"]


def test_programs_follow_each_other_on_the_time_axis(found: Profile) -> None:
    gap = DISPATCH[found.board.arch].gap_ns
    for before, after in zip(found.programs, found.programs[1:]):
        assert after.start_ns - before.end_ns == pytest.approx(after.gap_ns)
        assert after.gap_ns >= gap - 1e-6
    assert found.end_to_end.times[Mode.AS_IS].latency_ns > found.programs[-1].end_ns - found.programs[0].host_ns


def test_host_operations_are_rows_and_prevent_traces() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(x @ x).real + 1

    with torch.no_grad():
        mine = profile(model, torch.randn(32, 32))
    hosts = [row for row in mine.table if row["OP TYPE"] == "python_fallback"]
    assert any(row["OP CODE"].startswith("(torch) aten.linalg_eig") for row in hosts)
    assert hosts[0]["INPUT_0_MEMORY"] == "HOST"
    assert list(mine.end_to_end.times) == [Mode.AS_IS]
    assert "the time of" in str(mine) and "a trace cannot contain operations on the host" in str(mine)


# -- text and files ---------------------------------------------------------------------------------------------------


def test_text_is_not_wrapped_or_cut(found: Profile) -> None:
    text = str(found)
    assert text.splitlines()[0].endswith("on the emulated n150: predicted times, not measured")
    assert "…" not in text.replace("(…", "").replace("=…", "")
    programs = [row for row in found.table if row["OP TYPE"] == "tt_dnn_device"]
    for row in sorted(programs, key=lambda row: -row["DEVICE KERNEL DURATION [ns]"])[:SHOWN]:
        assert row["OP CODE"] in text and row["OPERATION"] in text


def test_files_of_a_folder(found: Profile, tmp_path: pathlib.Path) -> None:
    found.write(tmp_path / "out")
    memory = ["db.sqlite", "config.json", "cluster_descriptor.yaml"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        [sheet.FILE, device_log.LOG, device_log.TRACY, "performance.html", *memory]
    )
    text = (tmp_path / "out" / sheet.FILE).read_text(encoding="utf-8")
    assert text == found.to_csv() == found.to_csv(tmp_path / "again.csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(found.table)
    products = [row for row in rows if "Matmul" in row["OP CODE"]]
    assert products and all(row["MATH FIDELITY"] and row["INPUT_1_MEMORY"] for row in products)


def test_json_has_the_same_numbers(found: Profile) -> None:
    data = json.loads(json.dumps(found.to_json()))
    assert data["predicted"] is True
    assert data["kernels_ns"] == found.kernels_ns
    assert sum(group["kernel_ns"] for group in data["by_program"]) == pytest.approx(found.kernels_ns)
    traced = data["end_to_end"]["traced"]
    assert traced["per_second"] == pytest.approx(1e9 / traced["interval_ns"])


@pytest.fixture(scope="module")
def browser():
    with running() as found:
        yield found


def test_the_page_shows_programs_advice_and_roofline(found: Profile, browser, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "performance.html"
    assert path.parent.exists() and found.to_html(path) == path.read_text(encoding="utf-8")
    with opened(browser, path) as page:
        assert "Nothing here was measured" in page.locator("header").inner_text()
        assert page.locator(".advice").count() == len(found.advice)
        assert page.locator("#roofline circle").count() == len(found.roofline.points)
        titles = page.locator("#tables h2").all_inner_texts()
        assert f"All programs ({len(found.programs)})" in titles
        page.fill("#find", "softmax")
        assert page.locator("#found").inner_text().endswith("found")
        page.keyboard.press("Enter")
        box = page.locator("#timeline canvas").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30)
        page.mouse.wheel(0, -400)
        page.click("#closer")
        page.click("#fit")


def test_names_of_models_are_text_in_the_page(found: Profile) -> None:
    named = Profile("<b>x</b>", found._calls, found._planned, found.rows, found._device)
    assert "<b>x</b>" not in named.to_html().partition('id="data">')[0]


# -- advice -----------------------------------------------------------------------------------------------------------


def test_advice_is_ordered_by_gain_and_never_promises_more_than_there_is(found: Profile) -> None:
    gains = [each.gain_ns for each in found.advice]
    assert gains == sorted(gains, reverse=True)
    as_is = found.end_to_end.times[Mode.AS_IS].latency_ns
    assert all(0 < gain < as_is for gain in gains)
    assert Kind.HOST in {each.kind for each in found.advice}


def test_the_gain_of_a_lower_fidelity_is_that_of_the_changed_program() -> None:
    """What the advice predicts is what a profile of the changed model shows."""
    from torch_ttnn.perf.advice import Advisor
    from torch_ttnn.perf.calls import Call, Calls, Ref, kernels_ns, repeated, spec_only_device
    from torch_ttnn.perf.end_to_end import end_to_end
    from ttnn_emulator.hardware.boards import find_board
    from ttnn_emulator.profiling.recorder import Origin
    from ttnn_emulator.tensors.spec import Spec

    device = spec_only_device(find_board("n150"))
    x = Spec.of((1024, 1024), ttnn.bfloat8_b, ttnn.TILE_LAYOUT)

    def calls(fidelity: ttnn.MathFidelity) -> Calls:
        config = ttnn.WormholeComputeKernelConfig(math_fidelity=fidelity, packer_l1_acc=True)
        kwargs = {"compute_kernel_config": config}
        call = Call("ttnn.matmul", (Ref("x"), Ref("x")), kwargs, Ref("y"), Origin("ttnn.matmul"))
        return Calls(device.board, [call], {"x": x})

    slow, fast = calls(ttnn.MathFidelity.HiFi4), calls(ttnn.MathFidelity.HiFi2)
    made = list(repeated(slow, device))
    [advice] = [
        each
        for each in Advisor(slow, made, device, end_to_end(slow, made)).advice()
        if each.kind is Kind.FIDELITY and each.accuracy is Accuracy.SAME
    ]
    expected = kernels_ns(made, device.board) - kernels_ns(repeated(fast, device), device.board)
    assert advice.gain_ns == pytest.approx(expected) and expected > 0


def test_a_call_that_refuses_changed_operands_gains_nothing_for_free(found: Profile) -> None:
    """It gets them back as they were, and pays for the conversion."""
    from torch_ttnn.perf.calls import repeated

    def sharded(call, args, kwargs):
        if call.name != "ttnn.linear":
            return None
        source = args[0] if args else kwargs["input_tensor_a"]
        shape = source.physical_shape
        cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(0, 0))])
        shard = ttnn.ShardSpec(cores, (shape[0], shape[1]), ttnn.ShardOrientation.ROW_MAJOR)
        return args, {**kwargs, "memory_config": ttnn.MemoryConfig(HEIGHT, ttnn.BufferType.L1, shard)}

    after = list(repeated(found._calls, found._device, sharded, found._planned))
    assert [each.call for each in after] == [each.call for each in found._planned]
    for one, other in zip(found._planned, after):
        assert bool(one.records) <= bool(other.records), one.call.name


def test_shards_are_kept_between_convolutions() -> None:
    with torch.no_grad():
        mine = profile(Convolutions().eval(), torch.randn(1, 16, 64, 64))
    placement = [each for each in mine.advice if each.kind is Kind.PLACEMENT]
    assert placement and all(each.accuracy is Accuracy.SAME for each in placement)


# -- scripts ----------------------------------------------------------------------------------------------------------

SCRIPT = """
import torch
import ttnn

with ttnn.open_device(device_id=0, trace_region_size=1 << 20) as device:
    x = ttnn.from_torch(torch.ones(64, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    def model():
        return ttnn.relu(ttnn.matmul(x, x))
    model()
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    y = model()
    ttnn.end_trace_capture(device, trace, cq_id=0)
    for _ in range(3):
        ttnn.execute_trace(device, trace, cq_id=0, blocking=True)
    print(ttnn.to_torch(y).shape)
    {ending}
"""


@pytest.fixture
def own_ttnn(monkeypatch: pytest.MonkeyPatch):
    """Scripts are profiled with the emulator as `ttnn`; later tests must not find it."""
    import sys

    before = {name for name in sys.modules if name.partition(".")[0] in ("ttnn", "tracy", "tt_lib")}
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in ("ttnn", "tracy", "tt_lib")]:
        if name not in before:
            del sys.modules[name]


@pytest.mark.usefixtures("own_ttnn")
def test_a_script(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT.format(ending="pass"))
    ran = profile_script(script)
    assert ran.error is None and ran.profile is not None
    mine = ran.profile
    assert mine.name == "mine.py" and len(mine.programs) == 2 * 4
    assert {row.program.origin.source for row in mine.programs} == {f"{script}:8"}
    assert mine.kernels_ns == pytest.approx(sum(each.kernel_ns for each in analysis.by_source(mine.programs)))
    launched = mine.end_to_end.times[Mode.TRACED].latency_ns
    assert launched > mine.kernels_ns  # every execution of the trace counts


@pytest.mark.usefixtures("own_ttnn")
def test_a_script_that_fails_is_profiled_until_then(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT.format(ending="raise KeyError('mine')"))
    ran = profile_script(script)
    assert isinstance(ran.error, KeyError) and ran.profile is not None and len(ran.profile.programs) == 8
    script.write_text("x = 1")
    assert profile_script(script).profile is None
