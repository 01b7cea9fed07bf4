"""The data of the pages of traces, without a browser: complete, cut only as stated, and safe for any text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections import Counter
from fractions import Fraction
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tracer.invented import summary
from torch_ttnn.tracer.reports import page
from torch_ttnn.tracer.reports.changes import change_of_model, change_of_op
from torch_ttnn.tracer.reports.page_data import SHAPES, VALUES, page_data
from torch_ttnn.tracer.reports.summary import ModelPhase, ModelSummary, OpSummary, Summary
from torch_ttnn.tracer.reports.verdicts import locations, lowered_share

HOSTILE = "</script><img src=x onerror=alert(1)>{{data}}\u2028'\"&\ud800"


class _Page(HTMLParser):
    """What a browser would fetch or run, and the data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.scripts: list[str] = []
        self.policy = ""
        self.open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        given = dict(attrs)
        self.open = tag
        self.fetched += [name for name in given if name in ("src", "href", "srcset", "action") or name.startswith("on")]
        self.policy = given.get("content", "") if "http-equiv" in given else self.policy

    def handle_endtag(self, tag: str) -> None:
        self.open = ""

    def handle_data(self, data: str) -> None:
        if self.open == "script":
            self.scripts.append(data)


def one_op(**fields) -> Summary:
    """A run of one model with one operation."""
    op = OpSummary("aten.op.default", Counter({"m": 4}), **fields)
    model = ModelSummary("m")
    model.phases["fw"] = ModelPhase(graphs=1, ops=4, distinct_ops=1, lowering=Counter({"device": 4}))
    return Summary({"fw": {op.op_type: op}, "bw": {}}, {"m": model})


def test_page_is_self_contained_and_runs_only_its_own_script():
    text = page.render(summary(), title="A run")
    parsed = _Page(text)
    assert not parsed.fetched
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|innerHTML|eval\(", text)
    assert "<title>A run</title>" in text
    data, script = parsed.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in parsed.policy
    assert "default-src 'none'" in parsed.policy
    assert json.loads(data) == json.loads(json.dumps(page_data([summary()], ["A run"])))


def test_everything_that_was_counted_is_in_the_data():
    run = summary(ops=20, models=9)
    data = page_data([run], ["run"])
    for phase, ops in run.phases.items():
        shown = {op["name"]: op for op in data["phases"][phase]["ops"]}
        assert shown.keys() == ops.keys()
        for name, op in ops.items():
            got = shown[name]
            assert got["calls"] == [op.count]
            assert [got["flops"], got["in"], got["out"]] == [[op.flops], [op.bytes_in], [op.bytes_out]]
            assert {data["models"][number]["name"]: calls for number, calls in got["models"]} == op.models
            assert sum(calls for _, calls in got["inputs"]["bins"]) == op.count
            assert sum(calls for _, calls in got["statuses"]) == op.count
            arguments = {key: _counted(values) for key, values in got["arguments"]}
            assert arguments == {key: values.total() for key, values in op.arguments.items()}
    for model in data["models"]:
        assert model["bw"]["ops"] == [run.models[model["name"]].phases["bw"].ops]


def _counted(table: dict) -> int:
    return sum(row[1] for row in table["rows"]) + table.get("more", [0, 0])[1]


def test_long_tails_are_cut_and_counted():
    run = one_op(
        arguments={"dim": Counter({f"[{number}]": 1000 - number for number in range(500)})},
        shapes=Counter({f"{number}×1": 1 for number in range(SHAPES)}),
    )
    (op,) = page_data([run], ["run"])["phases"]["fw"]["ops"]
    ((name, values),) = op["arguments"]
    assert name == "dim"
    assert values["rows"][0] == ["[0]", 1000]
    assert len(values["rows"]) == VALUES
    assert values["more"] == [500 - VALUES, sum(1000 - number for number in range(VALUES, 500))]
    assert len(op["shapes"]["rows"]) == SHAPES and "more" not in op["shapes"]


def test_a_value_that_is_rare_in_one_run_is_not_shown_as_missing():
    common = Counter({f"[{number}]": 100 for number in range(VALUES)})
    before, after = (one_op(arguments={"dim": common + Counter({"[rare]": rare})}) for rare in (1, 1000))
    (op,) = page_data([before, after], ["before", "after"])["phases"]["fw"]["ops"]
    assert op["arguments"][0][1]["rows"][0] == ["[rare]", 1, 1000]


@given(st.dictionaries(st.integers(0, 2**62), st.integers(1, 50), min_size=1, max_size=30))
def test_bins_and_spread_of_sizes(sizes: dict[int, int]):
    (op,) = page_data([one_op(input_sizes=Counter(sizes))], ["run"])["phases"]["fw"]["ops"]
    for exponent, calls in op["inputs"]["bins"]:
        low, high = (0, 0) if exponent < 0 else (2**exponent, 2 ** (exponent + 1) - 1)
        assert calls == sum(many for size, many in sizes.items() if low <= size <= high) > 0
    assert sum(calls for _, calls in op["inputs"]["bins"]) == sum(sizes.values())
    each = sorted(Counter(sizes).elements())
    assert op["inputs"]["spread"] == [[each[0], each[(len(each) - 1) // 2], each[-1]]]


def hostile() -> Summary:
    """Every text that can come from a file is an attack."""
    op = OpSummary(HOSTILE, Counter({HOSTILE: 4}), source=HOSTILE)
    op.arguments = {HOSTILE: Counter({HOSTILE: 4})}
    op.shapes[HOSTILE] = op.dtypes[HOSTILE] = op.lowering[HOSTILE, HOSTILE] = op.input_sizes[8] = 4
    model = ModelSummary(HOSTILE)
    model.phases["fw"] = ModelPhase(graphs=1, ops=4, distinct_ops=1, lowering=Counter({HOSTILE: 4}))
    versions = {HOSTILE: Counter({HOSTILE: 1})}
    return Summary({"fw": {HOSTILE: op}, "bw": {}}, {HOSTILE: model}, [(HOSTILE, HOSTILE)], versions)


@pytest.mark.parametrize(
    "text", [page.render(hostile(), HOSTILE), page.compare(hostile(), hostile(), (HOSTILE, HOSTILE))]
)
def test_texts_of_files_cannot_break_the_page(text: str):
    parsed = _Page(text)
    assert not parsed.fetched
    assert len(parsed.scripts) == 2
    assert json.loads(parsed.scripts[0])["models"][0]["name"] == HOSTILE
    text.encode()  # a lone surrogate must not prevent the file from being written


def test_skipped_files_are_named_with_reasons():
    run = summary()
    run.bad = [(f"fw_{number}.json", f"cut off at {number}") for number in range(1000)]
    text = page.render(run)
    assert "1000 file(s) were skipped" in text
    assert "<code>fw_7.json</code> cut off at 7" in text
    assert "… and 800 more" in text


def test_pages_without_operations():
    for text in (page.render(Summary()), page.compare(Summary(), Summary())):
        assert json.loads(_Page(text).scripts[0])["models"] == []


@pytest.mark.parametrize("models", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_many_models_of_three_hundred_operations_take_moments(models: int):
    run = summary(ops=300, models=models)
    start = time.process_time()
    text = page.render(run)
    assert time.process_time() - start < 5
    assert len(text) < 1_500_000 + 5_000 * models


# -- verdicts and changes ---------------------------------------------------------------------------------------------


def test_a_decomposed_operation_with_a_reason_is_partly_on_the_host():
    lowering = Counter({("device", ""): 3, ("decomposed", ""): 2, ("decomposed", "aten.sort: no"): 4, ("", ""): 7})
    assert locations(lowering) == {"device": 3, "decomposed": 2, "partly": 4, "unknown": 7}
    assert lowered_share(locations(lowering)) == Fraction(5, 9)
    assert lowered_share(Counter({"unknown": 7})) is None


def op(device: int = 0, host: int = 0, **fields) -> OpSummary:
    lowering = Counter({("device", ""): device, ("host", "no"): host})
    return OpSummary("aten.op.default", Counter({"m": 10}), lowering=lowering, **fields)


@pytest.mark.parametrize(
    "before, after, change",
    [
        (None, op(10), ["added"]),
        (op(10), None, ["gone"]),
        (op(10), op(10), ["same"]),
        (op(10, source="here"), op(10, source="there"), ["same"]),
        (op(10), op(9, 1), ["regressed", "lowering"]),
        (op(9, 1), op(10), ["improved", "lowering"]),
        (op(8, 2), op(4, 1), ["changed", "lowering"]),  # the same share
        (op(10), op(), ["changed", "lowering"]),  # a missing answer is not a regression
        (op(10, flops=5), op(10, flops=6), ["changed", "FLOPs"]),
        (op(10), op(10, arguments={"dim": Counter("1")}), ["changed", "arguments"]),
    ],
)
def test_change_of_an_operation(before: OpSummary | None, after: OpSummary | None, change: list[str]):
    assert change_of_op(before, after) == change


def test_change_of_a_model():
    before = ModelPhase(graphs=1, ops=10, lowering=Counter(device=10))
    assert change_of_model(before, ModelPhase(graphs=1, ops=12, lowering=Counter(device=10, host=2))) == [
        "regressed",
        "calls",
        "lowering",
    ]
    assert change_of_model(before, None) == ["gone"]


@pytest.mark.parametrize(
    "count, text", [(0, "0"), (999_999, "999,999"), (4_120_000_000, "4.12 G"), (12 * 10**21, "12,000 E")]
)
def test_counts_as_text(count: int, text: str):
    assert page.count_text(count) == text
