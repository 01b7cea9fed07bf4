"""Summaries equal counts by hand, and bad files are listed, not counted."""

from __future__ import annotations

import gc
import json
import pathlib
import weakref
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_ttnn.tracer import records
from torch_ttnn.tracer.records import BACKWARD, FORWARD, NOT_JSONABLE, BadTrace, Record, TensorFact, Trace
from torch_ttnn.tracer.reports.summary import LONGEST_TEXT, NoTraces, Summary, calls_of, cut, summarise, value_text

IMAGE, KERNEL = TensorFact((1, 3, 8, 8), "float32", "input"), TensorFact((4, 3, 3, 3), "float32", "weight")
CONVOLUTION = Record(
    "aten.convolution.default",
    (IMAGE, KERNEL),
    (TensorFact((1, 4, 6, 6), "float32"),),
    {"input": NOT_JSONABLE, "weight": NOT_JSONABLE, "bias": None, "stride": [1, 1], "groups": 1},
    source="model.py:3: x = self.conv(x)",
    flops=7776,
    bytes_in=1200,
    bytes_out=576,
    lowering="device",
)
SORT = Record(
    "aten.sort.default", (IMAGE,), (IMAGE,), {"self": NOT_JSONABLE, "dim": -1}, lowering="host", reason="no lowering"
)


def written(folder: pathlib.Path, *traces: Trace) -> Summary:
    for trace in traces:
        records.write(trace, folder)
    return summarise(folder)


def test_calls_are_counted_by_operation_phase_and_model(tmp_path):
    summary = written(
        tmp_path,
        Trace("a", FORWARD, 0, (CONVOLUTION, CONVOLUTION, SORT)),
        Trace("a", FORWARD, 1, (SORT,)),
        Trace("b", FORWARD, 0, (CONVOLUTION,)),
        Trace("b", BACKWARD, 0, (SORT,)),
    )
    forward, backward = summary.phases[FORWARD], summary.phases[BACKWARD]
    assert forward["aten.convolution.default"].models == {"a": 2, "b": 1}
    assert forward["aten.sort.default"].count == 2
    assert backward["aten.sort.default"].models == {"b": 1}
    assert [op.op_type for op in summary.ops(FORWARD)] == ["aten.convolution.default", "aten.sort.default"]


def test_facts_of_an_operation(tmp_path):
    summary = written(tmp_path, Trace("a", FORWARD, 0, (CONVOLUTION, CONVOLUTION)))
    op = summary.phases[FORWARD]["aten.convolution.default"]
    assert (op.flops, op.bytes_in, op.bytes_out) == (15552, 2400, 1152)
    assert op.intensity == pytest.approx(15552 / 3552)
    assert op.input_sizes == {3 * 64 + 4 * 27: 2}
    assert op.output_sizes == {4 * 36: 2}
    assert op.shapes == {"1×3×8×8, 4×3×3×3": 2}
    assert op.dtypes == {"float32": 2}
    assert op.arguments["stride"] == {"[1, 1]": 2}
    assert op.arguments["bias"] == {"null": 2}
    assert op.arguments["weight"] == {NOT_JSONABLE: 2}
    assert list(op.arguments) == ["input", "weight", "bias", "stride", "groups"]
    assert op.lowering == {("device", ""): 2}
    assert op.source == "model.py:3: x = self.conv(x)"


def test_a_model_is_summed_over_its_graphs(tmp_path):
    summary = written(
        tmp_path,
        Trace("a", FORWARD, 0, (CONVOLUTION, SORT), {"torch": "2.13.0"}),
        Trace("a", FORWARD, 1, (SORT,), {"torch": "2.12.0"}),
    )
    model = summary.models["a"].phases[FORWARD]
    assert (model.graphs, model.ops, model.distinct_ops) == (2, 3, 2)
    assert (model.flops, model.bytes_in, model.bytes_out) == (7776, 1200, 576)
    assert model.lowering == {"device": 1, "host": 2}
    assert summary.models["a"].phases[BACKWARD].graphs == 0
    assert summary.versions == {"torch": {"2.13.0": 1, "2.12.0": 1}}


def test_a_call_that_is_partly_on_the_host_is_not_lowered(tmp_path):
    whole = Record("aten.op.default", (), (), lowering="decomposed")
    partly = Record("aten.op.default", (), (), lowering="decomposed", reason="aten.sort: no lowering")
    unasked = Record("aten.op.default", (), ())
    summary = written(tmp_path, Trace("a", FORWARD, 0, (whole, partly, partly, unasked)))
    assert summary.models["a"].phases[FORWARD].lowering == {"decomposed": 1, "partly": 2, "unknown": 1}
    assert summary.phases[FORWARD]["aten.op.default"].lowering["decomposed", "aten.sort: no lowering"] == 2


def test_an_operation_without_inputs_and_a_scalar(tmp_path):
    arange = Record("aten.arange.default", (), (TensorFact((5,), "int64"),))
    scalar = Record("aten.neg.default", (TensorFact((), "float64"),), (TensorFact((), "float64"),))
    ops = written(tmp_path, Trace("a", FORWARD, 0, (arange, scalar))).phases[FORWARD]
    assert ops["aten.arange.default"].input_sizes == {0: 1}
    assert ops["aten.arange.default"].dtypes == {"int64": 1}  # of its outputs
    assert ops["aten.neg.default"].shapes == {"scalar": 1}
    assert ops["aten.neg.default"].input_sizes == {1: 1}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1.0, "1.0"),
        (-0.5, "-0.5"),
        ("mean", '"mean"'),
        ("größe", '"größe"'),
        (NOT_JSONABLE, "not_jsonable"),
        ([1, None, [True]], "[1, null, [true]]"),
        (["not_jsonable"], '["not_jsonable"]'),
    ],
)
def test_values_are_counted_as_json(value, text):
    assert value_text(value) == text


def test_values_that_are_equal_in_python_are_counted_separately(tmp_path):
    values = [1, 1.0, True, "1", [1], [True], [1.0]]
    traced = tuple(Record("aten.op.default", (), (), {"x": value}) for value in values)
    seen = written(tmp_path, Trace("a", FORWARD, 0, traced)).phases[FORWARD]["aten.op.default"].arguments["x"]
    assert seen == {"1": 1, "1.0": 1, "true": 1, '"1"': 1, "[1]": 1, "[true]": 1, "[1.0]": 1}


def test_enormous_values_are_cut_and_stay_distinct(tmp_path):
    one, other = list(range(100_000)), [*range(99_999), 0]
    traced = tuple(Record("aten.op.default", (), (), {"x": value}) for value in (one, one, other))
    seen = written(tmp_path, Trace("a", FORWARD, 0, traced)).phases[FORWARD]["aten.op.default"].arguments["x"]
    assert sorted(seen.values()) == [1, 2]
    assert all(len(text) < LONGEST_TEXT + 60 and "characters" in text for text in seen)


def test_short_texts_are_not_changed():
    assert cut("x" * LONGEST_TEXT) == "x" * LONGEST_TEXT
    assert cut("x" * (LONGEST_TEXT + 1)) != cut("x" * (LONGEST_TEXT + 2))


def raw(*edits: tuple[str, object]) -> dict:
    """A trace as in its file, with some fields of its only record changed."""
    record = {"op_type": "aten.relu.default", "inputs": [], "outputs": [], "arguments": {}, **dict(edits)}
    head = {"format": records.FORMAT, "version": records.VERSION, "model": "bad", "phase": FORWARD, "graph": 0}
    return {**head, "versions": {}, "records": [{"op_type": "aten.good", "inputs": [], "outputs": []}, record]}


HUGE = {"shape": [1 << 62] * 400, "dtype": "float32"}
BAD = {
    "truncated": (json.dumps(raw())[:-20], "not JSON"),
    "empty": ("", "not finished"),
    "foreign": ('{"traceEvents": []}', "not marked"),
    "too many elements": (json.dumps(raw(("inputs", [HUGE]))), "elements"),
    "a lone surrogate in a value": (json.dumps(raw(("arguments", {"x": "\ud800"}))), "surrogates"),
    "a lone surrogate in a name": (json.dumps(raw(("op_type", "\udfff"))), "surrogates"),
    "a lone surrogate in a model": (json.dumps({**raw(), "model": "\ud800"}), "surrogates"),
    "deep": (json.dumps(raw()).replace('"arguments": {}', f'"arguments": {{"x": {"[" * 900}{"]" * 900}}}'), ""),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_and_not_counted(tmp_path, name):
    content, why = BAD[name]
    good = written(tmp_path, Trace("good", FORWARD, 0, (SORT,)))
    (tmp_path / "fw_bad_0.json").write_text(content)
    summary = summarise(tmp_path)
    if name == "deep" and not summary.bad:  # how deep Python goes depends on its version
        assert set(summary.models) == {"good", "bad"}
        return
    assert [file for file, _ in summary.bad] == ["fw_bad_0.json"]
    assert why in summary.bad[0][1]
    assert summary.models == good.models
    assert summary.phases == good.phases


def test_a_truncated_trace_counts_nothing(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(raw(("inputs", [HUGE]))))
    with pytest.raises(BadTrace, match="record 1"):
        list(calls_of(records.read(tmp_path / "x.json")))


def test_no_folder_and_an_empty_folder_say_what_to_do(tmp_path):
    with pytest.raises(NoTraces, match=r"no folder .*nowhere.*torch-ttnn stat"):
        summarise(tmp_path / "nowhere")
    with pytest.raises(NoTraces, match="has no traces"):
        summarise(tmp_path)


def test_listeners_and_progress_see_each_trace_once(tmp_path):
    written(tmp_path, *(Trace("a", FORWARD, graph, (SORT,)) for graph in range(3)))
    (tmp_path / "zzz.json").write_text("no")
    steps, heard = [], []
    summarise(
        tmp_path, lambda done, total: steps.append((done, total)), [lambda trace, calls: heard.append(trace.graph)]
    )
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert heard == [0, 1, 2]


def test_one_trace_is_in_memory_at_a_time(tmp_path):
    earlier: list[weakref.ref] = []

    def listen(trace, calls):
        assert not any(each() for each in earlier)
        earlier.append(weakref.ref(trace))

    written(tmp_path, *(Trace("a", FORWARD, graph, (SORT,)) for graph in range(3)))
    summarise(tmp_path, listeners=[listen])
    assert len(earlier) == 3


@pytest.mark.parametrize("enabled", [True, False])
def test_the_state_of_the_collector_is_restored_even_after_an_error(tmp_path, enabled):
    def fail(trace, calls):
        assert not gc.isenabled()
        raise OSError("the disk is full")

    written(tmp_path, Trace("a", FORWARD, 0, (SORT,)))
    was = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        with pytest.raises(OSError, match="full"):
            summarise(tmp_path, listeners=[fail])
        assert gc.isenabled() == enabled
    finally:
        gc.enable() if was else gc.disable()


tensors = st.builds(
    TensorFact, st.lists(st.integers(0, 9), max_size=4).map(tuple), st.sampled_from(["float32", "int64"])
)
anything = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
)
operations = st.builds(
    Record,
    st.sampled_from(["aten.add.Tensor", "aten.relu.default", "aten.cat.default"]),
    st.lists(tensors, max_size=3).map(tuple),
    st.lists(tensors, max_size=2).map(tuple),
    st.dictionaries(st.sampled_from("abc"), anything | st.lists(anything, max_size=3)),
    flops=st.integers(0, 1 << 62),
)
graphs = st.lists(
    st.tuples(
        st.sampled_from(["a", "b/c", "b"]), st.sampled_from([FORWARD, BACKWARD]), st.lists(operations, max_size=6)
    ),
    min_size=1,
    max_size=6,
)


@given(graphs)
def test_sums_equal_a_plain_count(tmp_path_factory, drawn):
    folder = tmp_path_factory.mktemp("raw")
    traces = [Trace(model, phase, number, tuple(ops)) for number, (model, phase, ops) in enumerate(drawn)]
    summary = written(folder, *traces)
    for phase in (FORWARD, BACKWARD):
        ops = [(trace.model, op) for trace in traces if trace.phase == phase for op in trace.records]
        counted = summary.phases[phase]
        plain = Counter((op.op_type, model) for model, op in ops)
        assert {(op.op_type, model): n for op in counted.values() for model, n in op.models.items()} == plain
        assert sum(op.flops for op in counted.values()) == sum(op.flops for _, op in ops)
        for name, op in counted.items():
            same = [each for _, each in ops if each.op_type == name]
            assert op.input_sizes == Counter(sum(tensor.elements for tensor in each.inputs) for each in same)
            assert op.output_sizes.total() == op.dtypes.total() == op.shapes.total() == len(same)
            values = Counter((key, json.dumps(value)) for each in same for key, value in each.arguments.items())
            seen = {(key, value): n for key, texts in op.arguments.items() for value, n in texts.items()}
            assert {(key, json.dumps(json.loads(value))): n for (key, value), n in seen.items()} == values
    assert not summary.bad
