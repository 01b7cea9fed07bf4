"""The cache of programs on disk: programs are reused, files are not trusted, and failures do no harm."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import json
import logging
import random
import sys
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import torch_ttnn
import ttnn_emulator
from torch_ttnn import zoo
from torch_ttnn.compiler import pipeline
from torch_ttnn.compiler.cache import programs as cache
from torch_ttnn.compiler.cache.serialisation import TOUCH_FILES, NotSerialisable, object_from, target_from
from torch_ttnn.compiler.errors import ProgramError
from torch_ttnn.compiler.ir.metadata import ORIGIN, REASON
from torch_ttnn.compiler.ir.source_lines import source_line
from torch_ttnn.compiler.runtime import specialisation as specialise
from ttnn_emulator.execution.operation_table import OPERATIONS


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(32, 64)
        self.norm = nn.LayerNorm(64)
        self.last = nn.Linear(64, 8)

    def forward(self, x):
        y = torch.softmax(self.last(self.norm(torch.relu(self.first(x)))), -1)
        return y, y.double().sum(), torch.arange(3)


def run(place, model=None, **more):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = model or Net().eval()
    options = torch_ttnn.TorchTtnnOption(cache_dir=str(place), **more)
    with torch.no_grad():
        outputs = torch.compile(model, backend="ttnn", options=options)(torch.ones(4, 32))
    return outputs, options.programs[0]


def line_of(node):
    return source_line(ORIGIN[node]) if ORIGIN.on(node) else ""


def test_a_cached_program_equals_the_compiled_one(tmp_path):
    first, made = run(tmp_path)
    second, found = run(tmp_path)
    assert "lower" in made.seconds and "lower" not in found.seconds
    assert found.source == made.source
    assert found.code == made.code and "# norm" in found.code  # with the modules of the model
    assert [line_of(node) for node in found.graph.nodes] == [line_of(node) for node in made.graph.nodes]
    for one, other in zip(first, second):
        assert torch.equal(one, other)
    assert [REASON.get(node) for node in found.graph.nodes] == [REASON.get(node) for node in made.graph.nodes]


def test_an_error_of_a_cached_program_names_the_line_of_the_model(tmp_path, monkeypatch):
    def fails(*args, **kwargs):
        raise RuntimeError("no more")

    run(tmp_path)
    monkeypatch.setattr(ttnn_emulator, "softmax", fails)
    with pytest.raises(ProgramError, match=r"no more\n.*ttnn\.softmax\((.|\n)*test_programs.py:\d+: y = torch.softmax"):
        run(tmp_path)


def test_other_weights_use_the_cached_program(tmp_path):
    run(tmp_path)
    model = Net().eval()
    with torch.no_grad():
        model.last.bias[0] += 5
    outputs, found = run(tmp_path, model)
    assert "lower" not in found.seconds
    torch.testing.assert_close(outputs[0], model(torch.ones(4, 32))[0], rtol=0.05, atol=0.02)


@pytest.mark.parametrize("change", [{"precision": "float32"}, {"device": "emulator:p150"}])
def test_other_options_and_boards_do_not(tmp_path, change):
    run(tmp_path)
    _, made = run(tmp_path, **change)
    assert "lower" in made.seconds


@pytest.mark.parametrize("content", ["", "{", "[]", '{"lowered": {"main": []}}', '{"constants": false, "lowered": 3}'])
def test_a_corrupt_file_is_named_and_recompiled(tmp_path, content, caplog):
    run(tmp_path)
    for path in tmp_path.glob("*.jsonl"):
        path.write_text(content)
    with caplog.at_level(logging.WARNING, "torch_ttnn"):
        _, made = run(tmp_path)
    assert "cannot be read" in caplog.text
    assert "lower" in made.seconds


CODE = "open('marker', 'w')"


def call_another(name):
    def edit(lowered, _):
        lowered["tables"]["targets"] = [name for _ in lowered["tables"]["targets"]]

    return edit


def name_an_option(lowered, code):
    lowered["tables"]["options"] = [{f"x={code}, y": 1} for _ in lowered["tables"]["options"]]


def name_a_node(lowered, code):
    for record in lowered["main"]:
        record[1] = f"x = {code} #"


def number_an_input(lowered, code):
    for record in lowered["main"]:
        record[6] = f"{code}] or inputs[0"


def make_an_object(lowered, _):
    lowered["tables"]["options"] = [{"x": {"source": "torch.hub.zipfile.ZipFile('marker', 'w')"}}]


@pytest.mark.parametrize(
    "edit",
    [
        *map(
            call_another,
            ["os:system", "load_library", "torch_ttnn.compiler.cache.programs:os.system", "ttnn.os.system"],
        ),
        *map(
            call_another, ["composites.torch.load", "prepare.__class__", "aten.from_file.default", "ttnn.dump_tensor"]
        ),
        name_an_option,
        name_a_node,
        number_an_input,
        make_an_object,
    ],
)
def test_a_hostile_file_runs_nothing(tmp_path, edit, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "kept"
    expected, _ = run(kept)
    (path,) = kept.glob("*.jsonl")
    document = json.loads(cache.unsealed(path.read_text()))
    edit(document["lowered"], CODE)
    path.write_text(cache.sealed(json.dumps(document)))
    outputs, made = run(kept)
    assert made.code
    assert "lower" in made.seconds or edit is name_a_node  # FX sanitises the names
    assert not (tmp_path / "marker").exists()
    assert torch.equal(outputs[0], expected[0])


@given(place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_a_file_with_a_changed_byte_is_rejected(cached_program, place, byte):
    compilation, path, document = cached_program
    content = bytearray(cache.sealed(json.dumps(document)).encode())
    number = int(place * len(content))
    changed = content[number] != byte
    content[number] = byte
    path.write_bytes(content)
    program = pipeline._cached_program(dataclasses.replace(compilation, seconds={}), path.parent)
    assert (program is None) == changed


def test_changed_constants_are_rejected(tmp_path, caplog):
    class Scaled(nn.Module):
        def forward(self, x):
            return x * torch.tensor([1.0, 2.0] * 16)

    expected, _ = run(tmp_path, Scaled())
    (path,) = tmp_path.glob("*.safetensors")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    outputs, made = run(tmp_path, Scaled())
    assert "lower" in made.seconds and "its checksum does not match" in caplog.text
    assert torch.equal(outputs, expected)


class Damage:
    """Corrupts a document: some of its parts are replaced, renamed, shuffled or removed."""

    PARTS = (None, -1, 10**6, 1.5, True, "", CODE, [], [CODE], {}, {CODE: 1}, {"source": CODE}, [0], [[]])

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def applied_to(self, document: Any) -> Any:
        for _ in range(self.random.randint(1, 3)):
            self._corrupt(*self._place(document))
        return document

    def _place(self, holder: Any) -> tuple[Any, Any]:
        while True:
            key = self.random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            inner = holder[key]
            if not isinstance(inner, dict | list) or not inner or self.random.random() < 0.1:
                return holder, key
            holder = inner

    def _corrupt(self, holder: Any, key: Any) -> None:
        pick = self.random.random()
        if pick < 0.2:
            del holder[key]
        elif pick < 0.3 and isinstance(holder, list):
            self.random.shuffle(holder)
        elif pick < 0.5 and isinstance(holder, dict):
            holder[CODE] = holder.pop(key)
        else:
            holder[key] = self.random.choice(self.PARTS)


@pytest.fixture(scope="module")
def cached_program(tmp_path_factory):
    """A compilation, and the file and the document of its cached program."""
    place = tmp_path_factory.mktemp("kept")
    seen = []
    compile_graph = specialise.compile_graph

    def watched(compilation):
        seen.append(compilation)
        return compile_graph(compilation)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(specialise, "compile_graph", watched)
        run(place)
    (path,) = place.glob("*.jsonl")
    return seen[0], path, json.loads(cache.unsealed(path.read_text()))


@given(seed=st.integers(0, 2**32))
def test_no_content_of_a_file_injects_code(cached_program, seed):
    compilation, path, document = cached_program
    path.write_text(cache.sealed(json.dumps(Damage(seed).applied_to(copy.deepcopy(document)))))
    program = pipeline._cached_program(dataclasses.replace(compilation, seconds={}), path.parent)
    if program is None:
        return
    try:
        source = program.source + program.code
    except Exception:  # no source was emitted
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function = ast.unparse(node.func)
            assert function.startswith(("ttnn.", "torch.ops.aten.", "composites.")) or function in LITERALS


LITERALS = ("float", "slice", "torch.device")


@pytest.mark.parametrize(
    "name",
    ["os:system", "torch:load", "builtins:eval", "load_library", "aten.add", "image.write_file", "ttnn.os.system"],
)
def test_only_functions_on_tensors_can_be_looked_up(name):
    with pytest.raises(NotSerialisable, match="may call"):
        target_from(name)


def test_no_operation_that_takes_a_file_can_be_looked_up():
    taking = {
        name
        for name, operation in OPERATIONS.items()
        if any("file" in parameter for parameter in inspect.signature(operation.function).parameters)
    }
    assert taking == {name for name in TOUCH_FILES if name.startswith("ttnn.")}


@pytest.mark.parametrize(
    "source",
    [
        "ttnn.os.system('x')",
        "torch.hub.load('x')",
        "torch.hub.zipfile.ZipFile('x', 'w')",
        "torch.multiprocessing.Process()",
        "torch.hub",
        "ttnn.table",
        "ttnn.__loader__",
        "ttnn.MathFidelity.mro()",
        "(lambda: 1)()",
    ],
)
def test_only_literals_and_configs_are_read(source):
    with pytest.raises(ValueError, match="is not allowed in a cached program"):
        object_from(source)


def test_a_users_operator_is_not_cached(tmp_path, caplog):
    @torch.library.custom_op("kept_programs::halved", mutates_args=())
    def halved(x: torch.Tensor) -> torch.Tensor:
        return x / 2

    halved.register_fake(torch.empty_like)

    class Halving(nn.Module):
        def forward(self, x):
            return halved(x * 2)

    with caplog.at_level(logging.INFO, "torch_ttnn"):
        outputs, _ = run(tmp_path, Halving())
    assert torch.equal(outputs, torch.ones(4, 32))
    assert "kept_programs.halved.default is not among the functions" in caplog.text
    assert not list(tmp_path.iterdir())


class Work:
    """Counts function calls while the stages run, which unlike time does not depend on the machine."""

    def __init__(self, monkeypatch) -> None:
        self.calls = 0
        compile_graph = specialise.compile_graph

        def counted(compilation):
            before = sys.getprofile()
            sys.setprofile(self._count)
            try:
                return compile_graph(compilation)
            finally:
                sys.setprofile(before)

        monkeypatch.setattr(specialise, "compile_graph", counted)

    def _count(self, _, event, __) -> None:
        self.calls += event in ("call", "c_call")

    def taken(self) -> int:
        calls, self.calls = self.calls, 0
        return calls


@pytest.mark.parametrize("name", ["bert-large-qa-2L", "gpt2-2L", "codegen-350M-2L", "resnet18-32px", "mnist-cnn"])
def test_reading_a_demo_model_takes_a_fifth_of_the_work_of_compiling_it(tmp_path, monkeypatch, name):
    monkeypatch.delenv("TORCH_TTNN_VERIFY")
    work = Work(monkeypatch)
    entry = zoo.find(name)
    model = entry.build().eval()
    args, kwargs = entry.inputs()
    results, effort = [], []
    for _ in range(2):
        torch._dynamo.reset()
        options = torch_ttnn.TorchTtnnOption(cache_dir=str(tmp_path))
        with torch.no_grad():
            results.append(torch.compile(model, backend="ttnn", options=options)(*args, **kwargs))
        effort.append(work.taken())
    assert ["lower" in program.seconds for program in options.programs] == [False]
    assert effort[1] <= effort[0] / 5
    for one, other in zip(*map(torch.utils._pytree.tree_leaves, results)):
        assert not isinstance(one, torch.Tensor) or torch.equal(one, other)


def test_the_oldest_programs_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr("torch_ttnn.compiler.cache.programs.MOST_PROGRAMS", 2)
    for width in (8, 16, 24):
        run(tmp_path, nn.Sequential(nn.Linear(32, width)))
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    _, found = run(tmp_path, nn.Sequential(nn.Linear(32, 24)))
    assert "lower" not in found.seconds


def test_no_folder_no_files(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    _, made = run("")
    assert "cache" not in made.seconds
    assert not list(tmp_path.iterdir())


def test_a_read_only_folder_is_tolerated(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    outputs, _ = run(tmp_path / "file" / "folder")
    assert outputs[0].shape == (4, 8)
    assert "could not be cached" in caplog.text
