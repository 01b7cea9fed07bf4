"""Calls and answers as JSON, for the real library and the emulator.

Runs on any Python from 3.10 with only the standard library. The `ttnn` module and the device are arguments: real or
emulated.

    {"T": [shape, dtype, layout, memory]}   a tensor on the device, memory as in "M"; a fifth entry "host" puts it there
    {"M": "DRAM" | "L1" | {"layout", "buffer", "shard", "grid", "orient"}}   a memory config
    {"E": "MathFidelity.HiFi4"}             an enum member
    {"C": [name, [args], {kwargs}]}         an object constructed by `ttnn.<name>`
    {"G": [[x0, y0, x1, y1], ...]}          a core range set
    {"D": 1}                                the device
    {"F": "inf"}                            a number that JSON cannot represent
    {"tuple": [...]}                        a tuple
"""

from __future__ import annotations

from typing import Any


def find_name(ttnn: Any, path: str) -> Any:
    found = ttnn
    for part in path.split("."):
        if part != "ttnn":
            found = getattr(found, part)
    return found


def core_ranges(ttnn: Any, grid: list) -> Any:
    core, core_range = ttnn.CoreCoord, ttnn.CoreRange
    return ttnn.CoreRangeSet([core_range(core(x0, y0), core(x1, y1)) for x0, y0, x1, y1 in grid])


def memory_config(ttnn: Any, text: Any) -> Any:
    if text == "DRAM":
        return ttnn.DRAM_MEMORY_CONFIG
    if text == "L1":
        return ttnn.L1_MEMORY_CONFIG
    layout = getattr(ttnn.TensorMemoryLayout, text["layout"])
    buffer = getattr(ttnn.BufferType, text.get("buffer", "L1"))
    if "shard" not in text:
        return ttnn.MemoryConfig(layout, buffer)
    orientation = getattr(ttnn.ShardOrientation, text.get("orient", "ROW_MAJOR"))
    return ttnn.MemoryConfig(
        layout, buffer, ttnn.ShardSpec(core_ranges(ttnn, text["grid"]), text["shard"], orientation)
    )


def make_tensor(ttnn: Any, device: Any, description: list) -> Any:
    shape, dtype, layout, memory, *rest = description
    options = {"dtype": getattr(ttnn, dtype), "layout": getattr(ttnn, layout + "_LAYOUT")}
    if "host" in rest:
        return ttnn.zeros(shape, **options)
    return ttnn.empty(shape, device=device, memory_config=memory_config(ttnn, memory), **options)


def decode(ttnn: Any, device: Any, value: Any) -> Any:
    """JSON → an argument."""
    if isinstance(value, list):
        return [decode(ttnn, device, item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (tag, content), *_ = value.items()
        if tag == "T":
            return make_tensor(ttnn, device, content)
        if tag == "M":
            return memory_config(ttnn, content)
        if tag == "E":
            return find_name(ttnn, content)
        if tag == "C":
            name, args, kwargs = content
            return find_name(ttnn, name)(*decode(ttnn, device, args), **decode(ttnn, device, kwargs))
        if tag == "G":
            return core_ranges(ttnn, content)
        if tag == "D":
            return device
        if tag == "F":
            return float(content)
        if tag == "tuple":
            return tuple(decode(ttnn, device, item) for item in content)
    return {key: decode(ttnn, device, item) for key, item in value.items()}


def describe_memory(config: Any) -> Any:
    layout, buffer = config.memory_layout.name, config.buffer_type.name
    if layout == "INTERLEAVED":
        return buffer
    described = {"layout": layout, "buffer": buffer}
    shard = config.shard_spec
    if shard is not None:
        described["shard"] = list(shard.shape)
        described["orient"] = shard.orientation.name
        described["grid"] = sorted([r.start.x, r.start.y, r.end.x, r.end.y] for r in shard.grid.ranges())
    return described


# Records that operations return, and their fields.
RECORDS = {
    "WeightCoreShardMaps": ("w0_w1_shard_map", "w2_shard_map", "dram_core_range_set"),
    "WeightMemoryConfigs": ("w0_w1", "w2"),
}


def describe_location(value: Any) -> Any:
    """Cores, memory configs and records of them as JSON; other objects as the name of their type."""
    kind = type(value).__name__
    if kind == "CoreCoord":
        return [value.x, value.y]
    if kind == "CoreRange":
        return [value.start.x, value.start.y, value.end.x, value.end.y]
    if kind == "CoreRangeSet":
        return [describe_location(core_range) for core_range in value.ranges()]
    if kind == "MemoryConfig":
        return describe_memory(value)
    if isinstance(value, (list, tuple)):
        return [describe_location(item) for item in value]
    if kind in RECORDS:
        return {name: describe_location(getattr(value, name)) for name in RECORDS[kind]}
    return value if isinstance(value, int) else kind


def describe(ttnn: Any, value: Any) -> Any:
    """A result → JSON: tensors as their specs, other values as JSON allows."""
    if isinstance(value, ttnn.Tensor):
        described = [list(value.shape), list(value.padded_shape), value.dtype.name.lower(), value.layout.name]
        on_device = value.storage_type() == ttnn.StorageType.DEVICE
        return {"T": [*described, describe_memory(value.memory_config()) if on_device else "host"]}
    if isinstance(value, (list, tuple)):
        return [describe(ttnn, item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return describe_location(value)


def first_sentence(error: BaseException) -> str:
    """The library's error message, without location and backtrace."""
    text = str(error)
    start = text.find("info:")
    text = text[start + 5 :] if start >= 0 else text
    text = text.split("backtrace:")[0].strip()
    return text.split("\n")[0][:300]


def answer(ttnn: Any, device: Any, question: dict) -> dict:
    """Run one call and describe its result or error."""
    try:
        args = decode(ttnn, device, question.get("args", []))
        kwargs = decode(ttnn, device, question.get("kwargs", {}))
    except Exception as error:
        return {"ok": False, "input": True, "type": type(error).__name__, "error": first_sentence(error)}
    try:
        result = find_name(ttnn, question["op"])(*args, **kwargs)
        return {"ok": True, "out": describe(ttnn, result)}
    except Exception as error:
        kind = "TypeError" if isinstance(error, TypeError) else type(error).__name__
        return {"ok": False, "type": kind, "error": first_sentence(error)}
