"""Raw files survive a round trip, and any file that is not a trace is rejected."""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import tempfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_ttnn.system.file_names import file_stem
from torch_ttnn.tracer import records
from torch_ttnn.tracer.records import BadTrace, Record, TensorFact, Trace, claim, file_name, read, write

COUNTS = st.integers(0, (1 << 63) - 1)
TEXTS = st.text(max_size=20)
SIZES = st.lists(st.integers(0, 4000), max_size=5).map(tuple)
TENSORS = st.builds(TensorFact, shape=SIZES, dtype=TEXTS, name=TEXTS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.builds(
    Record,
    op_type=TEXTS,
    inputs=st.lists(TENSORS, max_size=3).map(tuple),
    outputs=st.lists(TENSORS, max_size=3).map(tuple),
    arguments=st.dictionaries(TEXTS, JSON, max_size=4),
    source=TEXTS,
    module=TEXTS,
    flops=COUNTS,
    bytes_in=COUNTS,
    bytes_out=COUNTS,
    lowering=st.sampled_from(["", "device", "host", "decomposed"]),
    reason=TEXTS,
)
TRACES = st.builds(
    Trace,
    model=TEXTS,
    phase=st.sampled_from(["fw", "bw"]),
    graph=st.integers(0, 1000),
    records=st.lists(RECORDS, max_size=4).map(tuple),
    versions=st.dictionaries(TEXTS, TEXTS, max_size=2),
)


def simple(**changes: Any) -> Trace:
    record = Record("aten.relu.default", (TensorFact((2, 3), "float32", "self"),), (TensorFact((2, 3), "float32"),))
    return Trace(**{"model": "m", "phase": "fw", "graph": 0, "records": (record,)} | changes)


# -- round trips ------------------------------------------------------------------------------------------------------


@given(TRACES)
def test_traces_survive_a_round_trip(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(trace, pathlib.Path(folder))
        assert read(path) == trace
        assert os.listdir(folder) == [path.name]


def test_surrogates_in_names_are_replaced(tmp_path: pathlib.Path) -> None:
    trace = simple(model="bad\udcff")
    assert read(write(trace, tmp_path)).model == "bad?"


def test_values_that_json_lacks_are_not_written(tmp_path: pathlib.Path) -> None:
    broken = Record("aten.full.default", (), (), {"fill_value": float("nan")})
    with pytest.raises(ValueError):
        write(simple(records=(broken,)), tmp_path)
    assert not list(tmp_path.iterdir())


# -- names ------------------------------------------------------------------------------------------------------------

HOSTILE = ["..", ".", "", "/", "../../etc/passwd", "a/b", "a\\b", "a\x00b", "~", "C:\\x", "-rf", "x" * 500, "é" * 200]


@given(st.text() | st.sampled_from(HOSTILE))
def test_a_file_name_is_one_harmless_part_of_a_path(name: str) -> None:
    stored = file_name("fw", name, 10**6)
    assert pathlib.PurePosixPath(stored).name == stored == pathlib.PureWindowsPath(stored).name
    assert stored.startswith("fw_") and stored.endswith("_1000000.json")
    assert "\x00" not in stored and len(stored.encode()) < 200


@given(st.lists(st.text() | st.sampled_from(HOSTILE), min_size=2, max_size=5, unique=True))
def test_different_names_have_different_stems(names: list[str]) -> None:
    assert len({file_stem(name) for name in names}) == len(names)


def test_plain_names_stay() -> None:
    assert file_name("bw", "resnet18", 3) == "bw_resnet18_3.json"
    assert file_stem("vit_b-16.v2") == "vit_b-16.v2"


# -- numbers ----------------------------------------------------------------------------------------------------------


def test_numbers_follow_each_other_and_those_of_earlier_runs(tmp_path: pathlib.Path) -> None:
    assert [claim("m", tmp_path) for _ in range(3)] == [0, 1, 2]
    write(simple(graph=9), tmp_path)
    assert claim("m", tmp_path) == 10
    assert claim("other", tmp_path) == 0
    assert claim("m.", tmp_path) == 0


def test_no_two_threads_get_one_number(tmp_path: pathlib.Path) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: claim("m", tmp_path), range(100)))
    assert sorted(numbers) == list(range(100))


# -- invalid files ----------------------------------------------------------------------------------------------------

GOOD = {
    "format": "torch_ttnn.trace",
    "version": 1,
    "model": "m",
    "phase": "fw",
    "graph": 0,
    "records": [{"op_type": "aten.relu.default", "inputs": [], "outputs": [], "arguments": {}}],
}
RECORD = GOOD["records"][0]  # type: ignore[index]
TENSOR = {"shape": [1], "dtype": "float32"}
FOREIGN = {
    "a list": [1, 2],
    "null": None,
    "another format": GOOD | {"format": "chrome trace"},
    "a later version": GOOD | {"version": 2},
    "no phase": GOOD | {"phase": "sideways"},
    "no name": GOOD | {"model": 3},
    "a negative number": GOOD | {"graph": -1},
    "a number that is true": GOOD | {"graph": True},
    "no records": {name: value for name, value in GOOD.items() if name != "records"},
    "records that are a table": GOOD | {"records": {}},
    "versions that are a list": GOOD | {"versions": []},
    "versions that are numbers": GOOD | {"versions": {"torch": 2}},
    "a record that is a text": GOOD | {"records": ["x"]},
    "a record without op_type": GOOD | {"records": [{"inputs": [], "outputs": []}]},
    "arguments without names": GOOD | {"records": [RECORD | {"arguments": [1]}]},
    "inputs that are a table": GOOD | {"records": [RECORD | {"inputs": {}}]},
    "outputs that are missing": GOOD | {"records": [{"op_type": "x", "inputs": []}]},
    "a tensor that is a text": GOOD | {"records": [RECORD | {"inputs": ["x"]}]},
    "a tensor of negative size": GOOD | {"records": [RECORD | {"inputs": [TENSOR | {"shape": [-1]}]}]},
    "a tensor of broken size": GOOD | {"records": [RECORD | {"inputs": [TENSOR | {"shape": [1.5]}]}]},
    "a tensor of enormous size": GOOD | {"records": [RECORD | {"inputs": [TENSOR | {"shape": [1 << 70]}]}]},
    "a tensor of too many elements": GOOD
    | {"records": [RECORD | {"inputs": [TENSOR | {"shape": [1 << 40, 1 << 40]}]}]},
    "a lone surrogate": GOOD | {"model": "\ud800"},
    "a tensor without dtype": GOOD | {"records": [RECORD | {"inputs": [{"shape": [1]}]}]},
    "a tensor with a number for a name": GOOD | {"records": [RECORD | {"inputs": [TENSOR | {"name": 1}]}]},
    "flops below zero": GOOD | {"records": [RECORD | {"flops": -1}]},
    "too many flops": GOOD | {"records": [RECORD | {"flops": 1 << 63}]},
    "flops that are a text": GOOD | {"records": [RECORD | {"flops": "many"}]},
    "a source that is a list": GOOD | {"records": [RECORD | {"source": []}]},
}


def test_the_valid_example_is_valid(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(GOOD | {"records": [RECORD | {"inputs": [TENSOR]}]}))
    assert read(path).records[0].inputs == (TensorFact((1,), "float32"),)


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_content_is_rejected(content: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    with pytest.raises(BadTrace, match=r"\w+"):
        read(path)


HOSTILE_BYTES = {
    "nothing": b"",
    "not UTF-8": b'{"format": "\xff\xfe"}',
    "deep nesting": b"[" * 200_000,
    "deep nesting in a table": b'{"a":' * 100_000,
    "NaN": json.dumps(GOOD).replace('"graph": 0', '"graph": NaN').encode(),
    "infinity": json.dumps(GOOD).replace('"graph": 0', '"graph": Infinity').encode(),
    "a number of a million digits": json.dumps(GOOD).replace('"graph": 0', '"graph": ' + "9" * 1_000_000).encode(),
    "an infinite float": json.dumps(GOOD).replace('"graph": 0', '"graph": 1e999').encode(),
    "null bytes": b"\x00" * 1000,
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "two documents": (json.dumps(GOOD) * 2).encode(),
}


@pytest.mark.parametrize("content", HOSTILE_BYTES.values(), ids=HOSTILE_BYTES.keys())
def test_hostile_files_are_rejected(content: bytes, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(BadTrace):
        read(path)


def test_a_truncated_file_is_rejected(tmp_path: pathlib.Path) -> None:
    whole = write(simple(), tmp_path).read_bytes()
    cut = tmp_path / "cut.json"
    for length in range(len(whole.rstrip())):
        cut.write_bytes(whole[:length])
        with pytest.raises(BadTrace):
            read(cut)


def test_files_that_cannot_be_opened_are_rejected(tmp_path: pathlib.Path) -> None:
    with pytest.raises(BadTrace, match="No such file"):
        read(tmp_path / "missing.json")
    with pytest.raises(BadTrace, match="directory"):
        read(tmp_path)
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    with pytest.raises(BadTrace, match="symbolic links"):
        read(loop)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser reads every file")
def test_a_file_without_permission_is_rejected(tmp_path: pathlib.Path) -> None:
    path = write(simple(), tmp_path)
    path.chmod(0)
    with pytest.raises(BadTrace, match="Permission denied"):
        read(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(simple(), tmp_path)
    monkeypatch.setattr(records, "LARGEST_FILE", 10)
    with pytest.raises(BadTrace, match="larger than"):
        read(path)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.json"
        path.write_bytes(content)
        with pytest.raises(BadTrace):
            read(path)


@given(st.recursive(JSON, lambda inner: st.dictionaries(st.sampled_from(list(GOOD)), inner, max_size=6), max_leaves=20))
def test_no_json_crashes_the_reader(content: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.json"
        path.write_text(json.dumps(GOOD | content if isinstance(content, dict) else content))
        try:
            assert isinstance(read(path), Trace)
        except BadTrace as error:
            assert str(error)


def test_a_folder_is_read_file_by_file_and_bad_files_have_a_reason(tmp_path: pathlib.Path) -> None:
    write(simple(), tmp_path)
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "notes.txt").write_text("not ours")
    (tmp_path / "folder.json").mkdir()
    found = {path.name: trace for path, trace in records.read_all(records.files(tmp_path))}
    assert list(found) == ["bad.json", "fw_m_0.json"]
    assert isinstance(found["bad.json"], BadTrace) and "not JSON" in str(found["bad.json"])
    assert found["fw_m_0.json"] == simple()
