"""Runs calls on the real `ttnn`: one JSON line in, one JSON line out. Started by `real.RealTtnn`.

Runs on the Python with `ttnn`; of this package it needs only the file `exchange.py` beside it.
"""

from __future__ import annotations

import json
import os
import sys

if __package__:
    from ttnn_emulator.conformance import exchange
else:  # run as a script: files beside it are importable
    import exchange  # type: ignore[no-redef]

CHIPS_VARIABLE = "TTNN_MOCK_CHIPS"  # the number of chips of the mock card
L1_SMALL_SIZE = 32768  # convolutions and pools need some


def open_card(ttnn, chips: int):
    """The one device of a card, or a mesh of all its chips."""
    if chips == 1:
        return ttnn.open_device(device_id=0, l1_small_size=L1_SMALL_SIZE)
    if hasattr(ttnn, "set_fabric_config"):
        ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_1D)
    return ttnn.open_mesh_device(ttnn.MeshShape(1, chips), l1_small_size=L1_SMALL_SIZE)


def l1_use(ttnn, device, question: dict) -> dict:
    """Bytes of L1 per core that the call's program uses, as the library reports."""
    native = ttnn._ttnn.graph
    args = exchange.decode(ttnn, device, question.get("args", []))
    kwargs = exchange.decode(ttnn, device, question.get("kwargs", {}))
    native.begin_graph_capture(native.RunMode.NO_DISPATCH)
    try:
        exchange.find_name(ttnn, question["op"])(*args, **kwargs)
    finally:
        captured = native.end_graph_capture()
    use = native.extract_resource_usage_per_core(captured)
    return {name: getattr(use, name) for name in dir(use) if name.startswith("peak")}


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # the library prints to stdout, which is for replies
    import ttnn

    device = open_card(ttnn, int(os.environ.get(CHIPS_VARIABLE, "1")))
    replies.write(json.dumps({"ready": True}) + "\n")
    for line in sys.stdin:
        question = json.loads(line)
        if "exec" in question:
            scope = {"ttnn": ttnn, "device": device}
            try:
                exec(compile(question["exec"], "<question>", "exec"), scope)
                reply = {"ok": True, "out": exchange.describe(ttnn, scope.get("result"))}
            except Exception as error:
                reply = {"ok": False, "type": type(error).__name__, "error": exchange.first_sentence(error)}
        else:
            reply = exchange.answer(ttnn, device, question)
            if question.get("usage") and reply["ok"]:
                try:
                    reply["usage"] = l1_use(ttnn, device, question)
                except Exception as error:
                    reply["usage_error"] = exchange.first_sentence(error)
        replies.write(json.dumps(reply) + "\n")
        small = ttnn.get_memory_view(device, ttnn.BufferType.L1_SMALL)
        if small.total_bytes_allocated_per_bank:  # cached programs keep tables there; calls must not affect each other
            device.clear_program_cache()
    ttnn.close_device(device)


if __name__ == "__main__":
    main()
