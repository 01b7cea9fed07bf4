"""`torch_ttnn.export_code`: a compiled model as a standalone script, with files of its weights and inputs.

The script needs `ttnn`, `torch` and `safetensors`, but not this package, and runs on a card or with
`python -m ttnn_emulator script.py`. In the mode "accuracy" it computes the captured ATen graph in float32 as well and
prints the PCC of every operation of the model; in the mode "profiling" it times warm iterations.
"""

from __future__ import annotations

import inspect
import operator
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.fx
from safetensors.torch import save_file

import ttnn_emulator
from torch_ttnn.capture.model_call import ModelCall
from torch_ttnn.capture.programs import capture_call
from torch_ttnn.compiler.cache.operator_libraries import imports_of
from torch_ttnn.compiler.errors import TorchTtnnError
from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.ir.arguments import call_with, mapped
from torch_ttnn.compiler.ir.dump import graph_folder
from torch_ttnn.compiler.ir.metadata import CONSTANT, NUMBER, ORIGIN, PATH, PREPARED, SPEC
from torch_ttnn.compiler.ir.nodes import target_name
from torch_ttnn.compiler.ir.value import Value
from torch_ttnn.compiler.runtime.as_captured import corrected_strides
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.compiler.stages import emit
from torch_ttnn.compiler.stages.normalise import WITH_EFFECTS
from torch_ttnn.export import script
from ttnn_emulator import DataType
from ttnn_emulator.atomic_files import replacing

ACCURACY, PROFILING = "accuracy", "profiling"
MODES = (ACCURACY, PROFILING)
SCRIPT, WEIGHTS, INPUTS, REFERENCE = "script.py", "weights.safetensors", "inputs.safetensors", "reference.safetensors"

# How values of a device dtype are stored in a file; bfloat16 represents block floats exactly.
STORED_AS = {
    DataType.BFLOAT16: torch.bfloat16,
    DataType.BFLOAT8_B: torch.bfloat16,
    DataType.BFLOAT4_B: torch.bfloat16,
    DataType.FLOAT32: torch.float32,
    DataType.INT32: torch.int32,
    DataType.UINT32: torch.int64,
    DataType.UINT16: torch.int32,
    DataType.UINT8: torch.uint8,
}
# Remarks about the graph in the head of a script.
TRAINING = ("forward", "backward")
KINDS = {
    "forward": """
This is the forward graph of training: it returns the model's outputs, followed by what the backward graph needs.
Exported under torch.no_grad() it would be the inference graph.
""",
    "backward": """
This is the backward graph of training: its inputs are values of the forward graph and gradients of its outputs.
""",
}
BLOCK_FLOATS = (DataType.BFLOAT8_B, DataType.BFLOAT4_B)
COMPOSITES = "composites.py"
_COMPOSITE = re.compile(r"\bcomposites\.")
_CONFIG = re.compile(r"ttnn\.WormholeComputeKernelConfig\([^()]*\)")


class Exported(list):
    """The paths of the scripts in the order of the graphs; `kinds` says what each graph is."""

    def __init__(self, paths: Iterable[Path], kinds: Iterable[str]) -> None:
        super().__init__(paths)
        self.kinds = list(kinds)

    @property
    def is_training(self) -> bool:
        """Whether some are graphs of training, which have more outputs than the model."""
        return any(kind in TRAINING for kind in self.kinds)

    def __repr__(self) -> str:
        paths = ", ".join(f"{str(path)!r} ({kind})" for path, kind in zip(self, self.kinds))
        return f"<Exported {paths}>"


def export_code(
    model: Any,
    *inputs: Any,
    folder: str | os.PathLike | None = None,
    mode: str = ACCURACY,
    args: tuple | None = None,
    kwargs: Mapping[str, Any] | None = None,
    options: Any = None,
    device: Any = None,
    iterations: int = 10,
    **named: Any,
) -> Exported:
    """Compile a model for these inputs and write every program as a script; returns the paths of the scripts.

    The model and its arguments are those of `torch_ttnn.explain`; the folder, and after it the mode, may follow the
    inputs: `export_code(model, x, "out")`. The first graph of a model is written to `folder`, others to
    `folder/graph_2` and so on. If gradients are enabled, the graphs are those of training, as the scripts and
    `is_training` of the result say; call it under `torch.no_grad()` for inference.
    """
    inputs, folder, mode = _with_folder(inputs, folder, mode)
    _require_known(mode)
    captured = capture_call(
        ModelCall.of(model, inputs, named, args=args, kwargs=kwargs, options=options, device=device),
        from_host=True,
    )
    if captured.without_values:
        raise TorchTtnnError("a model on the meta device has no weights to export; build it with values")
    paths = [
        export_program(program, given, graph_folder(Path(folder), number), mode, iterations)
        for number, (_, program, given) in enumerate(captured.calls, start=1)
    ]
    return Exported(paths, [program.kind for _, program, _ in captured.calls])


def _with_folder(inputs: tuple, folder: Any, mode: str) -> tuple[tuple, Any, str]:
    """Split positional arguments into inputs of the model, folder, and mode."""
    if folder is not None:
        return inputs, folder, mode
    places = [number for number, each in enumerate(inputs) if isinstance(each, str | os.PathLike)]
    if not places:
        raise TypeError("export_code needs a folder to write to: export_code(model, x, folder)")
    first = places[0]
    after = inputs[first + 1 :]
    if len(after) > 1 or not all(isinstance(each, str) for each in after):
        raise TypeError("only the mode may follow the folder; pass other settings by name")
    return inputs[:first], inputs[first], after[0] if after else mode


def _require_known(mode: str) -> None:
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} is not supported; choose one of {', '.join(map(repr, MODES))}")


def export_program(
    program: Program,
    inputs: Sequence[Any],
    folder: str | os.PathLike,
    mode: str = ACCURACY,
    iterations: int = 10,
) -> Path:
    """Write one program with these inputs as a script with its files; returns the path of the script."""
    _require_known(mode)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        prepared = _Prepared(program, inputs)
    _save(prepared.tensors, folder / WEIGHTS)
    numbers = [NUMBER[node] for node in program.graph.nodes if _is_input(node)]
    tensors = {number: inputs[number] for number in numbers if isinstance(inputs[number], torch.Tensor)}
    _save({f"input_{number}": tensor for number, tensor in tensors.items()}, folder / INPUTS)
    given = {number: f'stored["input_{number}"]' if number in tensors else repr(inputs[number]) for number in numbers}
    forward = emit.forward_source(program.graph, program.weight_places, comments=True)
    graphs = [program.graph]
    parts = {
        "about": KINDS.get(program.kind, ""),
        "setup": _setup(program),
        "prepare": prepared.source,
        "forward": forward,
        "inputs": "{" + ", ".join(f"{number}: {text}" for number, text in given.items()) + "}",
        "iterations": str(iterations),
        "reference": "",
    }
    if mode == ACCURACY:
        reference = _Reference(program, inputs)
        _save(reference.tensors, folder / REFERENCE)
        parts["forward"] = _with_comparisons(forward, reference.compared)
        parts["reference"] = reference.source
        graphs.append(program.captured.graph)
    parts["foreign"] = imports_of(graphs)
    needs_composites = bool(_COMPOSITE.search(forward) or _COMPOSITE.search(parts["reference"]))
    parts["composites"] = script.LOAD_COMPOSITES if needs_composites else ""
    if needs_composites:
        with replacing(folder / COMPOSITES) as temporary:
            temporary.write_text(inspect.getsource(composites), encoding="utf-8")
    path = folder / SCRIPT
    with replacing(path) as temporary:
        temporary.write_text(_shortened(script.fill(mode, parts)), encoding="utf-8")
    return path


def _is_input(node: torch.fx.Node) -> bool:
    return node.op == "placeholder" and not PREPARED.on(node)


def _save(tensors: Mapping[str, Any], path: Path) -> None:
    """Save contiguous copies without shared memory, as the format requires."""
    copies = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with replacing(path) as temporary:
        save_file(copies, str(temporary))


def _setup(program: Program) -> str:
    device = program.target.typing
    return f"l1_small_size={device.l1_small_size}, trace_region_size={device.trace_region_size}"


def _shortened(text: str) -> str:
    """Assign compute configs, which nearly all calls share, to variables."""
    configs = sorted(set(_CONFIG.findall(text)))
    for number, config in enumerate(configs):
        name = "COMPUTE" if len(configs) == 1 else f"COMPUTE_{number + 1}"
        text = text.replace(config, name).replace("\n\n\n", f"\n\n{name} = {config}\n\n\n", 1)
    return text


# -- weights ----------------------------------------------------------------------------------------------------------


class _Prepared:
    """The weights as they are uploaded, and the calls that upload and prepare them."""

    def __init__(self, program: Program, inputs: Sequence[Any]) -> None:
        self.lowered = program.lowered
        self.inputs = inputs
        self.tensors: dict[str, torch.Tensor] = {}
        self._values: dict[torch.fx.Node, Any] = {}
        self._places = {prepared: weight.name for prepared, weight in self.lowered.weights}
        lines = ["def prepare(ttnn, device, stored):"]
        for node in self.lowered.prepare.nodes:
            line = self._statement(node)
            if line:
                lines.append(emit.INDENT + line)
        names = ", ".join(prepared.name for prepared, _ in self.lowered.weights)
        self.source = "\n".join([*lines, f"{emit.INDENT}return [{names}]"]) + "\n"

    def _statement(self, node: torch.fx.Node) -> str:
        path = PATH.get(node)
        if path == "ttnn.from_torch":
            tensor = self._stored(node, _as_uploaded(self._value(node.all_input_nodes[0]), node))
            options = [f"{name}={emit.literal(item)}" for name, item in node.kwargs.items()]
            return f"{node.name} = {path}({', '.join([tensor, *options])})"
        if path is not None or (node.target is operator.getitem and SPEC.on(node)):
            return f"{node.name} = {emit.call(node)}"
        if node in self._places:  # a host operation reads it as a torch tensor
            return f"{node.name} = {self._stored(node, self._value(node))}"
        return ""

    def _stored(self, node: torch.fx.Node, tensor: torch.Tensor) -> str:
        name = self._places.get(node, f"prepare_{node.name}")
        self.tensors[name] = tensor
        return f'stored["{name}"]'

    def _value(self, node: torch.fx.Node) -> Any:
        """The value that torch computes from the model's tensors before an upload."""
        if node not in self._values:
            self._values[node] = self._computed(node)
        return self._values[node]

    def _computed(self, node: torch.fx.Node) -> Any:
        if node.op == "placeholder":
            return self.inputs[NUMBER[node]].detach()
        if node.op == "get_attr":
            return CONSTANT[node]

        def value_of(item: Any) -> Any:
            return self._value(item) if isinstance(item, torch.fx.Node) else item

        return call_with(node.target, node.args, node.kwargs, value_of)  # type: ignore[arg-type]


def _as_uploaded(tensor: torch.Tensor, node: torch.fx.Node) -> torch.Tensor:
    """The values on the device after an upload, which rounds them."""
    dtype: Any = node.kwargs["dtype"]
    layout = ttnn_emulator.TILE_LAYOUT if dtype in BLOCK_FLOATS else ttnn_emulator.ROW_MAJOR_LAYOUT
    rounded = ttnn_emulator.from_torch(tensor, dtype=dtype, layout=layout)
    return ttnn_emulator.to_torch(rounded).to(STORED_AS[dtype])


# -- the ATen graph ---------------------------------------------------------------------------------------------------


class _Reference:
    """The captured graph as Python in float32, and which of its values the program's tensors are compared with."""

    def __init__(self, program: Program, inputs: Sequence[Any]) -> None:
        self.program = program
        self.graph = program.captured.graph
        self.captured = {node.name: node for node in self.graph.nodes}
        self.fused = {record["result"]: record["nodes"][0] for record in program.fusions}
        self.compared = self._compared()
        self.tensors = {f"given_{number}": each for number, each in enumerate(inputs) if isinstance(each, torch.Tensor)}
        self.inputs = inputs
        self.strides = corrected_strides(program.captured, inputs)
        self.source = "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        wanted = {name for name, _, _ in self.compared.values()}
        nodes = list(self.graph.nodes)
        last_uses = emit.last_uses(nodes)
        number = 0
        yield "def reference(stored):"
        yield f"{emit.INDENT}values = {{}}"
        for node in nodes:
            if node.op == "placeholder":
                yield f"{emit.INDENT}{node.name} = {self._given(number)}"
                number += 1
            elif node.op == "get_attr":
                self.tensors[node.name] = operator.attrgetter(str(node.target))(self.program.captured)
                yield f'{emit.INDENT}{node.name} = wide(stored["{node.name}"])'
            elif node.op == "output":
                yield f"{emit.INDENT}return {emit.literal(tuple(node.args[0]))}, values"  # type: ignore[arg-type]
                return
            else:
                call = _in_float32(node)
                if node.name in self.strides:  # strides of torch's kernel differ from those in the captured graph
                    call = f"composites.restrided({call}, {self.strides[node.name]})"
                yield f"{emit.INDENT}{node.name} = {call}"
            if node.name in wanted:
                yield f'{emit.INDENT}values["{node.name}"] = {node.name}'
            dead = [each.name for each in last_uses.get(node, ())]
            if dead:
                yield f"{emit.INDENT}del {', '.join(dead)}"

    def _given(self, number: int) -> str:
        if f"given_{number}" in self.tensors:
            return f'wide(stored["given_{number}"])'
        return emit.literal(self.inputs[number])

    def _compared(self) -> dict[str, tuple[str, str, tuple]]:
        """Name of a program's tensor -> the captured value, the operation, and its storage order."""
        lowered = self.program.lowered
        nodes = set(lowered.main.nodes)
        counterparts = self._counterparts()
        found: dict[str, tuple[str, str, tuple]] = {}
        for node, value in lowered.values.items():
            name = counterparts.get(node)
            base = value.base() if isinstance(value, Value) and value.is_on_device else None
            if name is None or base is None or base.node not in nodes or not base.node.users:
                continue
            origin = ORIGIN.get(base.node)
            if not isinstance(origin, torch.fx.Node):
                continue
            is_own = origin is node or (node.target is operator.getitem and origin is node.args[0])
            if (is_own or node.name in self.fused) and PATH.get(base.node) != "ttnn.from_torch":
                order = (value.form.stored_shape, value.form.axes, value.shape)
                found.setdefault(base.node.name, (name, self._operation(name), order))
        return found

    def _operation(self, name: str) -> str:
        node = self.captured[name]
        return target_name(node.args[0] if node.target is operator.getitem else node)  # type: ignore[arg-type]

    def _counterparts(self) -> dict[torch.fx.Node, str]:
        """The captured value that each lowered node computes; for a fused node, that of its last operation."""
        found = {}
        for node in self.program.lowered.values:
            same = self.captured.get(node.name)
            name = self.fused.get(node.name, node.name if same is not None and same.target is node.target else "")
            val = self.captured[name].meta.get("val") if name in self.captured else None
            if isinstance(val, torch.Tensor) and val.shape == getattr(node.meta.get("val"), "shape", None):
                found[node] = name
        return found


def _in_float32(node: torch.fx.Node) -> str:
    def widened(item: Any) -> Any:
        return torch.float32 if item in (torch.bfloat16, torch.float16) else item

    if node.target is operator.getitem:
        return emit.call(node)
    if node.target is WITH_EFFECTS:  # a token, which only orders calls, and the operation's results
        _, operation, *args = node.args
        called = emit.call_text(f"torch.ops.{operation}", mapped(args, widened), mapped(node.kwargs, widened))
        return f"(None, {'*' if len(operation._schema.returns) > 1 else ''}{called})"  # type: ignore[union-attr]
    return emit.call_text(emit.function_name(node), mapped(node.args, widened), mapped(node.kwargs, widened))


def _with_comparisons(source: str, compared: Mapping[str, tuple[str, str, tuple]]) -> str:
    lines = []
    for line in source.splitlines():
        lines.append(line)
        call = re.match(rf"{emit.INDENT}(\w+) = (.*?)\(", line)
        if call and call.group(1) in compared:
            name, operation, (stored, axes, shape) = compared[call.group(1)]
            arguments = f'"{call.group(2)}", "{operation}", {call.group(1)}, "{name}", {stored}, {axes}, {shape}'
            lines.append(f"{emit.INDENT}compare({arguments})")
    return "\n".join(lines) + "\n"
