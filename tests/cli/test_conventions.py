"""Conventions of all commands: help, suggestions, early checks, JSON, completion, `doctor` and `cache`."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

from tests.cli.test_command import MODELS
from torch_ttnn import __version__
from torch_ttnn.cli import cache, doctor, main, tables
from torch_ttnn.cli.command import COMMANDS, NAME, VARIABLE
from torch_ttnn.devices import card

NAMES = [module.__name__.rpartition(".")[2] for module in COMMANDS]
TABLES = ("stat", "run", "metrics", "results", "report", "explain", "models", "demo", "doctor", "cache")


@pytest.fixture
def workplace(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    (tmp_path / "mine.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return tmp_path


def ended(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("--version") == 0
    assert capsys.readouterr().out == f"torch-ttnn {__version__}\n"


def test_no_command_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    ended()
    shown = capsys.readouterr()
    assert shown.out.startswith("Usage: torch-ttnn")
    assert "examples" in shown.out
    assert all(f"\n  {name} " in shown.out for name in NAMES)
    assert not shown.err


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("name", NAMES)
def test_help_by_both_names(name: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(name, option) == 0
    assert f"Usage: torch-ttnn {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "usage", "hint"),
    [
        (["sta"], "torch-ttnn [OPTIONS]", "Did you mean 'stat'?"),
        (["explian", "resnet18"], "torch-ttnn [OPTIONS]", "Did you mean 'explain'?"),
        (["stat", "a", "--bacth", "2"], "torch-ttnn stat", "--batch"),
        (["metrics", "a", "--cals", "2"], "torch-ttnn metrics", "--calls"),
        (["run", "a", "--backend", "torch_tnn"], "torch-ttnn run", "torch_ttnn"),
        (["run", "a", "--device", "emulator:n15"], "torch-ttnn run", "Did you mean 'emulator:n150'?"),
        (["run", "a", "--device", "emulater"], "torch-ttnn run", "Did you mean 'emulator'?"),
        (["explain", "a", "--device", "n300"], "torch-ttnn explain", "Did you mean 'emulator:n300'?"),
        (["metrics", "a", "--device", "ttnn:x"], "torch-ttnn metrics", "cards are numbered"),
        (["demo", "--device", "gpu"], "torch-ttnn demo", 'Write "emulator"'),
        (["stat", "a", "--pretrained", "--weights", "w"], "torch-ttnn stat", "exclude each other"),
        (["explain"], "torch-ttnn explain", "Missing argument 'MODEL'"),
        (["cache", "cleer"], "torch-ttnn cache", "clear"),
    ],
)
def test_mistakes_show_the_usage_and_a_hint(
    arguments: list[str], usage: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(*arguments) == 2
    shown = capsys.readouterr().err
    assert f"Usage: {usage}" in shown
    assert hint in shown


def test_models_of_the_zoo_are_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "resnet81", "-q"]) == 2
    assert "Did you mean resnet18" in capsys.readouterr().err
    assert main(["explain", "mnist-cn"]) == 2
    assert "Did you mean zoo:mnist-cnn" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "metrics", "explain", "demo"])
def test_a_missing_card_is_reported_before_jobs_start(
    command: str, workplace: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise card._not_installed("No module named 'ttnn'")

    monkeypatch.setattr(card, "require_likely", missing)
    assert main([command, "mnist-cnn", "--device", "ttnn"]) == 2
    assert "Install the library with `pip install ttnn==" in capsys.readouterr().err
    assert [path.name for path in workplace.iterdir()] == ["mine.py"]


def test_a_device_of_the_environment_is_checked_as_well(
    workplace: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCH_TTNN_DEVICE", "emulator:n15")
    assert main(["run", "mine:tiny", "-q"]) == 2
    assert "TORCH_TTNN_DEVICE: no board is called 'n15'" in capsys.readouterr().err


def test_the_variable_of_the_device_is_that_of_the_compiler() -> None:
    from torch_ttnn import devices
    from torch_ttnn.cli import choices, parameters
    from ttnn_emulator.hardware import boards

    assert choices.DEVICE_VARIABLE == devices.VARIABLE
    assert parameters.boards() == boards.names_with_grids()


# -- tables and JSON --------------------------------------------------------------------------------------------------


def test_names_are_whole_in_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    name = "a_model_of_a_name_that_is_a_good_deal_longer_than_forty_columns"
    tables.console().print(tables.table([name], [1], {"number": str, "text": lambda item: "x" * 90}))
    shown = capsys.readouterr().out
    assert name in shown
    assert "x" * 90 in shown


@pytest.mark.parametrize("name", TABLES)
def test_every_command_with_a_table_has_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    ended(name, "--help")
    assert "--json" in capsys.readouterr().out


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0):
    capsys.readouterr()
    assert main(arguments) == code
    return json.loads(capsys.readouterr().out)


def test_json_of_runs(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (traced,) = printed(capsys, "stat", "mine:tiny", "--json", "-q")
    assert (traced["model"], traced["status"], traced["result"]["graphs"]) == ("mine.tiny", "ok", 1)
    report = printed(capsys, "report", "--no-pictures", "--no-parquet", "--json", "-q")
    assert report["models"] == ["mine.tiny"] and report["page"].endswith("index.html")
    ran, crashed = printed(capsys, "run", "mine:tiny", "mine:crashes", "--json", "-q", code=1)
    assert ran["result"]["pcc"] > 0.99
    assert crashed["status"] == "crash" and crashed["reason"]
    explained = printed(capsys, "explain", "mine:tiny", "--json")
    assert explained["programs"][0]["host_ops"] == []


def test_json_of_metrics(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    content = printed(capsys, "metrics", "mnist-cnn", "--calls", "1", "--no-tasks", "--json", "-q")
    assert [row["model"] for row in content["rows"]] == ["mnist-cnn"]
    again = printed(capsys, "metrics", "mnist-cnn", "--calls", "1", "--no-tasks", "--json", "-q", "--check",
                    "metrics/results.parquet")  # fmt: skip
    assert again["check"]["ok"] and again["check"]["compared"] == 1


def test_json_of_lists(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "zoo:resnet18" in printed(capsys, "models", "--json")
    assert {"model", "family", "task"} == set(printed(capsys, "demo", "--list", "--json")[0])


def test_json_of_a_demonstration(capsys: pytest.CaptureFixture[str]) -> None:
    content = printed(capsys, "demo", "mnist-cnn", "--repeats", "1", "--json", "-q")
    assert content["models"][0]["model"] == "mnist-cnn"
    assert content["models"][0]["pcc"] > 0.99


# -- completion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["re"], {"report", "results"}),
        (["stat", "--back"], {"--backward"}),
        (["run", "--device", "emulator:p"], {"emulator:p150"}),
        (["run", "--backend", "aot"], {"aot_eager"}),
        (["run", "resnet1"], {"resnet18", "resnet101", "resnet152"}),
    ],
)
def test_a_shell_completes(
    words: list[str], expected: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join([NAME, *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert ended() == 0
    assert expected <= {line.partition(",")[2] for line in capsys.readouterr().out.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    assert f"{VARIABLE}={shell}_complete" in shown
    assert NAME in shown


# -- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor_passes(capsys: pytest.CaptureFixture[str]) -> None:
    found = {each["name"]: each for each in printed(capsys, "doctor", "--json")}
    assert list(found) == [
        "Python", "torch", "torch_ttnn", "torchvision", "transformers", "timm", "diffusers", "ttnn", "device", "cache",
        "self-test",
    ]  # fmt: skip
    assert found["self-test"]["status"] == "ok"
    assert "0 on the host" in found["self-test"]["text"]
    assert "emulated n150" in found["device"]["text"]
    assert all(each["status"] in ("ok", "note") for each in found.values())
    assert main(["doctor"]) == 0
    assert "emulated n150" in capsys.readouterr().out


def test_doctor_fails_with_one_check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(options):
        raise RuntimeError("it does not work\nat all")

    monkeypatch.setattr(doctor, "_self_test", broken)
    found = printed(capsys, "doctor", "--json", code=1)
    assert found[-1] == {"name": "self-test", "status": "FAILS", "text": "RuntimeError: it does not work"}


def test_doctor_reports_a_torchvision_from_another_index(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("torch_ttnn.zoo.torchvision_ops.library_loads", lambda: False)
    monkeypatch.setattr("torch.__version__", "2.13.0+cpu")
    found = {each["name"]: each for each in printed(capsys, "doctor", "--json")}
    if "not installed" in found["torchvision"]["text"]:
        pytest.skip("torchvision is not installed")
    assert found["torchvision"]["status"] == "note"
    fix = "--index-url https://download.pytorch.org/whl/cpu torchvision"
    assert fix in found["torchvision"]["text"]
    capsys.readouterr()
    assert main(["explain", "torchvision:squeezenet1_1"]) == 0
    (note,) = capsys.readouterr().err.strip().splitlines()
    assert fix in note
    assert main(["explain", "mnist-cnn"]) == 0
    assert not capsys.readouterr().err


# -- cache ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A cache with a program, a kernel and an environment."""
    folder = tmp_path / "torch_ttnn"
    (folder / "ttnn-0.81.1").mkdir(parents=True)
    (folder / "ttnn-0.81.1" / "file").write_bytes(bytes(1000))
    (folder / "a.jsonl").write_bytes(bytes(10))
    (folder / "a.safetensors").write_bytes(bytes(20))
    (folder / "mine.txt").write_text("not ours")
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "x.f-1.nbi").write_bytes(bytes(5))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TORCH_TTNN_CACHE_DIR", raising=False)
    monkeypatch.setattr("torch_ttnn.cli.kernels.folders", lambda: [tmp_path / "kernels"])
    return folder


def test_the_cache_is_listed(kept: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {each["kind"]: each for each in printed(capsys, "cache", "--json")}
    assert {kind: (each["files"], each["bytes"]) for kind, each in found.items()} == {
        "programs": (2, 30), "kernels": (1, 5), "environments": (1, 1000),
    }  # fmt: skip
    assert main(["cache"]) == 0
    assert str(kept) in capsys.readouterr().out


def test_the_cache_is_cleared_only_when_confirmed(kept: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "clear"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert (kept / "a.jsonl").exists()
    assert main(["cache", "clear", "--yes"]) == 0
    assert "removed 2 files of programs" in capsys.readouterr().out
    assert sorted(path.name for path in kept.iterdir()) == ["mine.txt", "ttnn-0.81.1"]
    assert not list((kept.parent / "kernels").iterdir())
    assert main(["cache", "clear", "--yes"]) == 0
    assert "nothing is cached" in capsys.readouterr().out
    assert main(["cache", "clear", "--kind", "environments", "--yes"]) == 0
    assert [path.name for path in kept.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_clearing_asks_for_confirmation(
    answer: str, code: int, kept: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", lambda text, err: answer == "y")
    assert main(["cache", "clear"]) == code
    assert (kept / "a.jsonl").exists() == (answer == "n")


def test_the_folder_of_programs_is_that_of_the_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    from torch_ttnn import TorchTtnnOption
    from torch_ttnn.compiler.cache.programs import folder

    for value in (None, "", str(tmp_path)):
        if value is None:
            monkeypatch.delenv("TORCH_TTNN_CACHE_DIR", raising=False)
        else:
            monkeypatch.setenv("TORCH_TTNN_CACHE_DIR", value)
        assert cache.program_folder() == folder(TorchTtnnOption())
