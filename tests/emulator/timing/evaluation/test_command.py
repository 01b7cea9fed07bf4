"""`python -m ttnn_emulator.timing evaluate`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from ttnn_emulator.timing.__main__ import main

DATA = Path(__file__).parents[1] / "data"
OPS = "op_code,arch,grid_cores,core_count,math_fidelity,inputs,outputs,kernel_ns_median,pm_ideal_ns"
TILES = "1x1x640x640:TILE:BFLOAT16:DRAM_INTERLEAVED"
GOOD = f"CopyDeviceOperation,blackhole,110,110,,{TILES},{TILES},9000,100"
GEMM = "board,mode,m,k,n,grid_x,grid_y,in0_sharded,dtype,fidelity,device_kernel_ns_derived"
SHARDED = "m_size,k_size,n_size,num_cores,duration"
EXP = "op,shape,dtype,input_memory,kernel_ns_median"
FORMATS = {
    OPS: (GOOD, "copy"),
    GEMM: ("p150,oob,1024,1024,1024,11,10,,BFLOAT16,HiFi2,20000", "matmul (oob)"),
    SHARDED: ("640,32,96,10,2448", "matmul (height-sharded)"),
    EXP: ("ttnn.exp,1x1x64x64,bfloat16,DRAM,4900", "exp"),
}


def written(folder: Path, *lines: str, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def call_of(name: str = "ttnn.relu", **more: object) -> str:
    tensor = {"shape": [1, 1, 64, 64], "padded": [1, 1, 64, 64], "dtype": "bfloat16", "layout": "tile"}
    tensor["memory"] = {"kind": "interleaved", "buffer": "dram"}
    return json.dumps({"op": name, "inputs": [{"arg": "input_tensor", **tensor}], "outputs": [tensor], **more})


def lines_of(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


@pytest.mark.parametrize(("header", "row", "family"), [(header, *rest) for header, rest in FORMATS.items()])
def test_formats_are_told_by_their_columns(
    header: str, row: str, family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(written(tmp_path, header, row))]) == 0
    assert family in lines_of(capsys)


def test_ideal_is_shown_where_the_file_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(written(tmp_path, OPS, GOOD))]) == 0
    assert "98.9%" in lines_of(capsys)


def test_other_columns_are_ignored(tmp_path: Path) -> None:
    assert main(["evaluate", str(written(tmp_path, SHARDED + ",note", "640,32,96,10,2448,hello"))]) == 0


BAD_CELLS = {
    "without a time": (GOOD.replace("9000", ""), "kernel_ns_median is 'missing', not a time"),
    "with a negative time": (GOOD.replace("9000", "-1"), "kernel_ns_median is '-1', not a time"),
    "with words for a time": (GOOD.replace("9000", "long"), "kernel_ns_median is 'long', not a time"),
    "of an unknown program": (GOOD.replace("CopyDevice", "NoSuch"), "no program is called NoSuchOperation"),
    "of an unknown chip": (GOOD.replace("blackhole", "whitehole"), "no board is known for arch 'whitehole'"),
    "with a tensor of no form": (GOOD.replace(TILES, "a tensor", 1), "no tensor can be read from 'a tensor'"),
    "without its cores": (GOOD.replace(",110,110,", ",110,,"), "core_count is 'missing', not a number"),
    "that ends early": ("CopyDeviceOperation,blackhole", "not a time"),
}


@pytest.mark.parametrize(("row", "reason"), BAD_CELLS.values(), ids=BAD_CELLS)
def test_rows_that_cannot_be_predicted_are_misses(
    row: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(written(tmp_path, OPS, GOOD, row))]) == 0
    out = lines_of(capsys)
    assert "1 rows without a prediction, counted as misses" in out
    assert "row 1," in out and reason in out


@pytest.mark.parametrize("header", FORMATS)
@pytest.mark.parametrize("cell", ["", "x"])
def test_no_cell_of_a_row_stops_the_others(
    header: str, cell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row, family = FORMATS[header]
    cells = row.split(",")
    broken = [",".join([*cells[:place], cell, *cells[place + 1 :]]) for place in range(len(cells))]
    assert main(["evaluate", str(written(tmp_path, header, *broken, row))]) == 0
    assert family in lines_of(capsys)


def test_misses_beyond_a_number_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = BAD_CELLS["of an unknown program"][0]
    assert main(["evaluate", str(written(tmp_path, OPS, *[bad] * 5)), "--show", "2"]) == 0
    out = lines_of(capsys)
    assert out.count("no program is called") == 2
    assert "and 3 more; --show prints more of them" in out


# -- call lists -------------------------------------------------------------------------------------------------------


def test_lists_are_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, call_of(), call_of(count=3), name="model_n150_b1.jsonl")
    assert main(["evaluate", str(path)]) == 0
    (row,) = (line for line in lines_of(capsys).splitlines() if "model_n150_b1" in line)
    assert [cell.strip() for cell in row.split("│")[3:5]] == ["4", "4"]


def test_the_published_time_is_read_from_the_readme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, call_of(), name="model_n150_b1.jsonl")
    written(tmp_path, "| file | device ms |", "|---|---|", "| model_n150_b1 | 0.004 |", name="README.md")
    assert main(["evaluate", str(path)]) == 0
    assert "0.004" in lines_of(capsys)


def test_operations_that_are_not_modelled_have_a_generic_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, call_of("ttnn.something_new"), name="model_p150_b1.jsonl")
    assert main(["evaluate", str(path)]) == 0
    assert "100.0%" in lines_of(capsys)


def test_a_call_that_cannot_be_read_is_a_miss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, call_of(), '{"op": "ttnn.relu", "inputs": [{"shape": [1]}]}', name="m_n150_b1.jsonl")
    assert main(["evaluate", str(path)]) == 0
    assert "row 1, ttnn.relu: not a call" in lines_of(capsys)


# -- bad files --------------------------------------------------------------------------------------------------------

BAD_FILES = {
    "unknown columns": ("a.csv", "one,two\n1,2\n", "its columns are those of no known format: one, two"),
    "empty": ("a.csv", "", "is empty"),
    "empty list": ("m_n150_b1.jsonl", "\n", "is empty"),
    "no board": ("model.jsonl", call_of(), "does not name a board, as in model_n150_b8.jsonl"),
    "not JSON": ("m_n150_b1.jsonl", call_of() + "\n{op}", "line 2: not JSON"),
    "not an object": ("m_n150_b1.jsonl", "[1]", "line 1: not an object with a call"),
}


@pytest.mark.parametrize(("name", "text", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files_are_refused_in_one_line(
    name: str, text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert main(["evaluate", str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error and str(path) in error
    assert error.count("\n") == 1


def test_files_that_are_not_text_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.csv", "m_n150_b1.jsonl"):
        (tmp_path / name).write_bytes(b"\xff\xfe\x00\x80")
        assert main(["evaluate", str(tmp_path / name)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_a_missing_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(tmp_path / "none.csv")]) == 2
    assert "none.csv" in capsys.readouterr().err


# -- --csv ------------------------------------------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_rows_are_written_with_their_predictions(tmp_path: Path) -> None:
    source = written(tmp_path, OPS, GOOD, BAD_CELLS["of an unknown program"][0], GOOD + ",more cells")
    target = tmp_path / "out.csv"
    assert main(["evaluate", str(source), "--csv", str(target)]) == 0
    rows = read(target)
    assert list(rows[0]) == [*OPS.split(","), "predicted_ns"]
    assert [row["op_code"] for row in rows] == ["CopyDeviceOperation", "NoSuchOperation", "CopyDeviceOperation"]
    assert float(rows[0]["predicted_ns"]) == float(rows[2]["predicted_ns"]) > 0
    assert rows[1]["predicted_ns"] == ""


def test_files_of_several_formats_share_a_table(tmp_path: Path) -> None:
    sources = [
        written(tmp_path, header, row, name=f"{number}.csv")
        for number, (header, (row, _)) in enumerate(FORMATS.items())
    ]
    sources.append(written(tmp_path, call_of(count=2), name="model_n150_b1.jsonl"))
    target = tmp_path / "out.csv"
    assert main(["evaluate", *map(str, sources), "--csv", str(target)]) == 0
    rows = read(target)
    assert len(rows) == 5 and all(float(row["predicted_ns"]) > 0 for row in rows)
    assert rows[-1]["list"] == "model_n150_b1" and rows[-1]["op"] == "ttnn.relu" and rows[-1]["count"] == "2"


def test_a_table_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    source = written(tmp_path, OPS, GOOD)
    assert main(["evaluate", str(source), "--csv", str(tmp_path / "no folder" / "out.csv")]) == 2
    target = written(tmp_path, "kept", name="out.csv")
    assert main(["evaluate", str(tmp_path / "none.csv"), "--csv", str(target)]) == 2
    assert target.read_text(encoding="utf-8") == "kept\n"
