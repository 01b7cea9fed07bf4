"""Buffers that trace replays would overwrite on a card, in a process that tracks them from its start."""

from __future__ import annotations

import os
import subprocess
import sys

import ttnn_emulator as ttnn

SCRIPT = """
import gc
import ttnn_emulator as ttnn

TRACE, TOOLS = ttnn._ttnn.operations.trace, ttnn.tools.trace_allocation_tracker
device = ttnn.open_device(device_id=0, trace_region_size=200000)

def room():
    return ttnn.allocate_tensor_on_device(ttnn.Shape([32, 32]), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)

def captured(x):
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    kept = ttnn.neg(x)
    ttnn.end_trace_capture(device, trace, cq_id=0)
    return trace, kept

x = room()
ttnn.neg(x)
first, kept = captured(x)
between = room()
second, also_kept = captured(x)
assert TOOLS.TRACE_ALLOC_TRACKING
assert between.buffer_unique_id() in TRACE.get_unsafe_tracked_ids(device, first)
assert not TRACE.get_unsafe_tracked_ids(device, second)
ttnn.execute_trace(device, second, cq_id=0)
try:
    ttnn.execute_trace(device, first, cq_id=0)
    raise AssertionError("replayed")
except RuntimeError as error:
    assert f"Buffer {between.buffer_unique_id()}" in str(error)
TOOLS.acknowledge_corruptible(between)
TOOLS.acknowledge_corruptible(also_kept)
with TOOLS.corruptible_allocation_scope(device):
    scoped = room()
ttnn.execute_trace(device, first, cq_id=0)
made = ttnn.neg(x)
assert TRACE.get_unsafe_tracked_ids(device, second)[made.buffer_unique_id()] == "ttnn.neg"
del made
gc.collect()
assert not TRACE.get_unsafe_tracked_ids(device, second)
ttnn.release_trace(device, first)
ttnn.release_trace(device, second)
assert TRACE.get_all_unsafe_tracked_ids() == set()
print("as expected")
"""


def run(**variables: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", SCRIPT]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)


def test_unsafe_buffers_prevent_a_replay():
    done = run(TT_METAL_TRACE_ALLOC_TRACKING="1")
    assert done.stdout.strip() == "as expected", done.stderr


def test_nothing_is_tracked_by_default():
    trace = ttnn._ttnn.operations.trace
    assert not trace.trace_allocation_tracking_enabled()
    with ttnn.open_device(device_id=0) as device:
        assert trace.get_unsafe_tracked_ids(device, ttnn.MeshTraceId(0)) == {}
