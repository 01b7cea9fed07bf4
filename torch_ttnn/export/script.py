"""Template of an exported script: the code around the program, which opens the device, compares and times."""

from __future__ import annotations

from collections.abc import Mapping

HEAD = '''"""A model compiled by torch_ttnn, as a standalone program.

Needs ttnn, torch and safetensors. Run it on a card:    python script.py
or on the emulator:                                     python -m ttnn_emulator script.py
{about}"""

import pathlib
{imports}
import torch
import ttnn
from safetensors.torch import load_file
{foreign}
HERE = pathlib.Path(__file__).resolve().parent
{composites}

{prepare}

{forward}

'''

ACCURACY = '''
{reference}

EXPECTED = {{}}
SCORES = []


def wide(tensor):
    return tensor.float() if tensor.is_floating_point() else tensor


def correlation(got, want):
    """Pearson correlation over values that are finite in both; 1 for equal tensors, even constant ones."""
    got, want = got.double().flatten(), want.double().flatten()
    finite = got.isfinite() & want.isfinite()
    got, want = got[finite], want[finite]
    if got.numel() == 0 or torch.equal(got, want):
        return 1.0
    got, want = got - got.mean(), want - want.mean()
    length = got.norm() * want.norm()
    return float(got @ want / length) if length else 0.0


def compare(call, operation, tensor, name, stored_shape, axes, shape):
    """Compare a tensor of the device with its value in the ATen graph."""
    got = ttnn.to_torch(tensor).reshape(stored_shape).permute(axes).reshape(shape)
    score = correlation(got, EXPECTED[name])
    SCORES.append((score, call, name))
    print(f"PCC {{score:9.6f}}  {{call:48}} {{operation:44}} {{name}}")


def main():
    stored = load_file(HERE / "inputs.safetensors")
    outputs, values = reference(load_file(HERE / "reference.safetensors"))
    EXPECTED.update(values)
    device = ttnn.open_device(device_id=0, {setup})
    try:
        weights = prepare(ttnn, device, load_file(HERE / "weights.safetensors"))
        results = forward(ttnn, device, weights, {inputs})
        del weights
    finally:
        ttnn.close_device(device)
    for number, (got, want) in enumerate(zip(results, outputs)):
        if isinstance(want, torch.Tensor):
            print(f"output {{number}}: PCC {{correlation(got, want):.6f}}")
    if SCORES:
        score, call, name = min(SCORES)
        print(f"{{len(SCORES)}} operations compared; the lowest is {{call}} ({{name}}): PCC {{score:.6f}}")


if __name__ == "__main__":
    main()
'''

PROFILING = """
ITERATIONS = {iterations}


def run(device, weights, inputs):
    start = time.perf_counter()
    outputs = forward(ttnn, device, weights, inputs)
    ttnn.synchronize_device(device)
    return outputs, time.perf_counter() - start


def main():
    stored = load_file(HERE / "inputs.safetensors")
    inputs = {inputs}
    device = ttnn.open_device(device_id=0, {setup})
    try:
        start = time.perf_counter()
        weights = prepare(ttnn, device, load_file(HERE / "weights.safetensors"))
        print(f"weights prepared in {{(time.perf_counter() - start) * 1e3:.2f}} ms")
        print(f"first call {{run(device, weights, inputs)[1] * 1e3:.2f}} ms")
        times = [run(device, weights, inputs)[1] * 1e3 for _ in range(ITERATIONS)]
        for number, spent in enumerate(times):
            print(f"iteration {{number}}: {{spent:.3f}} ms")
        mean = sum(times) / len(times)
        print(f"mean {{mean:.3f}} ms, best {{min(times):.3f}} ms, {{1e3 / mean:.2f}} iterations/s")
        del weights
    finally:
        ttnn.close_device(device)


if __name__ == "__main__":
    main()
"""

# For fused operations without an ATen name that run on the host.
LOAD_COMPOSITES = """
spec = importlib.util.spec_from_file_location("composites", HERE / "composites.py")
composites = importlib.util.module_from_spec(spec)
spec.loader.exec_module(composites)
"""

MODES = {"accuracy": (ACCURACY, ""), "profiling": (PROFILING, "import time\n")}


def fill(mode: str, parts: Mapping[str, str]) -> str:
    """The whole script."""
    body, imports = MODES[mode]
    if parts["composites"]:
        imports = f"import importlib.util\n{imports}"
    return (HEAD + body).format(imports=imports, **parts)
