"""Traces, command queues, captured graphs, listeners, specs without data."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn


def upload(values: torch.Tensor, device, **kwargs):
    return ttnn.from_torch(values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device, **kwargs)


def host(values: torch.Tensor):
    return ttnn.from_torch(values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)


# -- traces -----------------------------------------------------------------------------------------------------------


def test_a_trace_recomputes_from_its_input_buffers(device) -> None:
    source = upload(torch.full((32, 32), -1.0), device)

    def program():
        middle = ttnn.relu(source)
        result = ttnn.add(middle, 1.0)
        ttnn.deallocate(middle)
        return result

    program()
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    result = program()
    ttnn.end_trace_capture(device, trace, cq_id=0)
    for value in (3.0, -2.0, 0.5):
        ttnn.copy_host_to_device_tensor(host(torch.full((32, 32), value)), source)
        ttnn.execute_trace(device, trace, cq_id=0, blocking=False)
        assert torch.equal(ttnn.to_torch(result), torch.full((32, 32), max(value, 0) + 1.0, dtype=torch.bfloat16))
    ttnn.release_trace(device, trace)
    with pytest.raises(ttnn.InvalidArgument, match="not a captured trace"):
        ttnn.execute_trace(device, trace, cq_id=0)


def test_capture_runs_nothing(device) -> None:
    source = upload(torch.ones(32, 32), device)
    ttnn.relu(source)
    trace = ttnn.begin_trace_capture(device)
    result = ttnn.relu(source)
    with pytest.raises(ttnn.InvalidArgument, match="Reads are not supported during trace capture"):
        ttnn.to_torch(result)
    ttnn.end_trace_capture(device, trace)
    with pytest.raises(ttnn.InvalidArgument, match="has not been executed"):
        ttnn.to_torch(result)


def test_calls_that_cannot_be_captured_are_refused(device) -> None:
    source = upload(torch.ones(32, 32), device)
    trace = ttnn.begin_trace_capture(device)
    with pytest.raises(ttnn.InvalidArgument, match="Run the same calls once before"):
        ttnn.relu(source)
    with pytest.raises(ttnn.InvalidArgument, match="Writes are not supported"):
        upload(torch.ones(32, 32), device)
    with pytest.raises(ttnn.InvalidArgument, match="already being captured"):
        ttnn.begin_trace_capture(device)
    ttnn.end_trace_capture(device, trace)


def test_a_replay_drops_freed_buffers_after_their_last_use(device) -> None:
    source = upload(torch.ones(64, 64), device)

    def program():
        first = ttnn.add(source, 1.0)
        seen = ttnn.reshape(first, (1, 64, 64))
        second = ttnn.add(seen, 1.0)
        ttnn.deallocate(first)
        third = ttnn.add(second, 1.0)
        ttnn.deallocate(second)
        return third

    program()
    trace = ttnn.begin_trace_capture(device)
    result = program()
    ttnn.end_trace_capture(device, trace)
    programs = device.traces[trace].programs
    freed = [storage for program in programs for storage in program.last_read]
    assert [len(program.last_read) for program in programs] == [0, 1, 1]
    for _ in range(2):
        ttnn.execute_trace(device, trace)
        assert torch.equal(ttnn.to_torch(result), torch.full((1, 64, 64), 4.0, dtype=torch.bfloat16))
        assert all(storage.values is None for storage in freed)


def test_buffers_of_the_trace_alone_are_freed_with_it(device) -> None:
    source = upload(torch.ones(64, 64), device)

    def program():
        kept = ttnn.add(source, 1.0)
        middle = ttnn.reshape(ttnn.add(kept, 1.0), (1, 64, 64))  # neither its buffer nor the view is referenced
        return kept, ttnn.reshape(ttnn.add(middle, 1.0), (64, 64))  # the view of this one is referenced

    program()
    trace = ttnn.begin_trace_capture(device)
    kept, result = program()
    ttnn.end_trace_capture(device, trace)
    assert [len(program.last_read) for program in device.traces[trace].programs] == [0, 0, 1]
    for _ in range(2):
        ttnn.execute_trace(device, trace)
        assert torch.equal(ttnn.to_torch(kept), torch.full((64, 64), 2.0, dtype=torch.bfloat16))
        assert torch.equal(ttnn.to_torch(result), torch.full((64, 64), 4.0, dtype=torch.bfloat16))


def test_a_view_of_a_view_frees_its_source(device) -> None:
    source = upload(torch.ones(64, 64), device)

    def program():
        return ttnn.add(ttnn.reshape(ttnn.reshape(ttnn.add(source, 1.0), (1, 64, 64)), (1, 1, 64, 64)), 1.0)

    program()
    trace = ttnn.begin_trace_capture(device)
    result = program()
    ttnn.end_trace_capture(device, trace)
    assert [len(program.last_read) for program in device.traces[trace].programs] == [0, 1]
    ttnn.execute_trace(device, trace)
    assert torch.equal(ttnn.to_torch(result), torch.full((1, 1, 64, 64), 3.0, dtype=torch.bfloat16))


def test_a_trace_that_exceeds_its_region_reports_the_size() -> None:
    with ttnn.open_device(device_id=0, trace_region_size=2048) as device:
        source = upload(torch.ones(32, 32), device)
        ttnn.relu(source)
        trace = ttnn.begin_trace_capture(device)
        kept = [ttnn.relu(source) for _ in range(3)]
        with pytest.raises(ttnn.InvalidArgument, match="trace_region_size=6144"):
            ttnn.end_trace_capture(device, trace)
        assert len(kept) == 3


# -- queues -----------------------------------------------------------------------------------------------------------


def test_two_queues_with_events() -> None:
    with ttnn.open_device(device_id=0, num_command_queues=2) as device:
        source = upload(torch.zeros(32, 32), device)
        done = ttnn.record_event(device, 0)
        ttnn.wait_for_event(1, done)
        ttnn.copy_host_to_device_tensor(host(torch.ones(32, 32)), source, 1)
        written = ttnn.record_event(device, 1)
        ttnn.wait_for_event(0, written)
        with ttnn.command_queue(0):
            result = ttnn.add(source, 1.0)
        ttnn.event_synchronize(written)
        assert ttnn.to_torch(result).unique().tolist() == [2.0]


def test_a_queue_that_was_not_opened_is_refused(device) -> None:
    with pytest.raises(ttnn.InvalidArgument, match="num_command_queues=2"):
        ttnn.record_event(device, 1)


# -- graphs and listeners ---------------------------------------------------------------------------------------------


def test_graph_capture_records_calls_and_memory(device) -> None:
    source = upload(torch.ones(64, 64), device)
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
    first = ttnn.relu(source, memory_config=ttnn.L1_MEMORY_CONFIG)
    second = ttnn.add(first, 1.0, memory_config=ttnn.L1_MEMORY_CONFIG)
    ttnn.deallocate(first)
    captured = ttnn.graph.end_graph_capture()
    calls = ttnn.graph.extract_calltrace(captured)
    assert [name for name in calls if name in ("ttnn.relu", "ttnn.add")] == ["ttnn.relu", "ttnn.add"]
    assert ttnn.graph.extract_peak_L1_memory_usage(captured) >= 2 * 4 * 2048
    per_core = ttnn.graph.extract_resource_usage_per_core(captured)
    assert per_core.peak_l1 == 2 * 2048
    assert per_core.peak_total >= per_core.peak_l1
    assert [info.type for info in ttnn.graph.extract_output_info(captured)] in ([ttnn.BufferType.L1], [])
    assert captured[0]["node_type"] == "capture_start"
    assert captured[-1]["node_type"] == "capture_end"
    assert "ttnn.relu" in ttnn.graph.pretty_format(captured)
    edges = ttnn.graph.extract_levelized_graph(captured)
    assert any(node["in_edges"] for node in edges)
    assert second.is_allocated()


def test_no_dispatch_allocates_and_computes_nothing(device) -> None:
    source = upload(torch.ones(64, 64), device)
    before = ttnn.get_memory_view(device, ttnn.BufferType.DRAM).total_bytes_allocated_per_bank
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
    result = ttnn.add(ttnn.relu(source), 1.0)
    ttnn.graph.end_graph_capture()
    assert list(result.shape) == [64, 64]
    assert ttnn.get_memory_view(device, ttnn.BufferType.DRAM).total_bytes_allocated_per_bank == before
    with pytest.raises(ttnn.InvalidArgument, match="no values"):
        ttnn.to_torch(result)


def test_listeners_are_notified_with_arguments_and_times(device) -> None:
    heard: list[ttnn.OperationEvent] = []

    class Recorder(ttnn.Listener):
        def ended(self, event: ttnn.OperationEvent) -> None:
            heard.append(event)

    source = upload(torch.ones(32, 32), device)
    with ttnn.listening(Recorder()):
        ttnn.relu(source)
        with pytest.raises(ttnn.EmulatorError):
            ttnn.matmul(source, upload(torch.ones(5, 32), device))
    names = [event.name for event in heard]
    assert "ttnn.relu" in names
    relu = heard[names.index("ttnn.relu")]
    assert relu.arguments["input_tensor"] is source
    assert relu.end >= relu.start
    assert any(event.error is not None for event in heard)
    count = len(heard)
    ttnn.relu(source)
    assert len(heard) == count


def test_hooks_with_the_names_of_the_library(device) -> None:
    seen = []
    source = upload(torch.ones(32, 32), device)
    with (
        ttnn.register_pre_operation_hook(lambda op, args, kwargs: seen.append(("before", op))),
        ttnn.register_post_operation_hook(lambda op, args, kwargs, out: seen.append(("after", op))),
    ):
        ttnn.relu(source)
    assert seen == [("before", "ttnn.relu"), ("after", "ttnn.relu")]


# -- specs without data -----------------------------------------------------------------------------------------------


def test_operations_run_on_specs_alone() -> None:
    with ttnn.open_device(device_id=0, holds_values=False) as device:
        weight = ttnn.empty((4096, 4096), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
        x = ttnn.empty((1, 1, 32, 4096), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
        result = ttnn.relu(ttnn.matmul(x, weight))
        assert list(result.shape) == [1, 1, 32, 4096]
        assert result._storage.values is None
        with pytest.raises(ttnn.EmulatorError, match="matmul"):
            ttnn.matmul(x, ttnn.relu(x))


def test_a_device_without_values_returns_zeros_and_warns(caplog) -> None:
    with ttnn.open_device(device_id=0, holds_values=False) as device:
        host = ttnn.from_torch(torch.ones(5, 33), dtype=ttnn.bfloat16)
        weight = ttnn.to_device(ttnn.to_layout(host, ttnn.TILE_LAYOUT), device)
        for _ in range(2):
            read = ttnn.to_torch(weight)
            assert (read.shape, read.dtype, read.any().item()) == ((5, 33), torch.bfloat16, False)
        assert sum("holds no values" in record.message for record in caplog.records) == 1
        again = ttnn.from_torch(ttnn.to_torch(ttnn.relu(weight)).T, layout=ttnn.TILE_LAYOUT, device=device)
        assert list(ttnn.matmul(weight, again).shape) == [5, 5]
        assert not ttnn.to_torch(ttnn.from_device(weight)).any()
        assert ttnn.to_torch(host).all()


def test_zeros_of_a_device_without_values_are_not_written_to_files(tmp_path) -> None:
    with ttnn.open_device(device_id=0, holds_values=False) as device:
        weight = upload(torch.ones(64, 64), device)
        with pytest.raises(ttnn.InvalidArgument, match="no values to write"):
            ttnn.dump_tensor(tmp_path / "weight.tensorbin", weight)


def test_a_device_without_values_converts_no_weights(tmp_path, monkeypatch) -> None:
    converted = []
    monkeypatch.setattr(
        "ttnn_emulator.numerics.formats.carriers.host_convert", lambda values, dtype: converted.append(values)
    )
    weight = torch.zeros(1).expand(4096, 4096)
    with ttnn.open_device(device_id=0, holds_values=False) as device:
        made = ttnn.as_tensor(
            weight,
            dtype=ttnn.bfloat8_b,
            layout=ttnn.TILE_LAYOUT,
            device=device,
            memory_config=ttnn.DRAM_MEMORY_CONFIG,
            cache_file_name=tmp_path / "weight",
        )
        assert (list(made.shape), made.dtype) == ([4096, 4096], ttnn.bfloat8_b)
    assert not converted and not list(tmp_path.iterdir())


def test_specs_only_allocates_no_memory(device) -> None:
    source = upload(torch.ones(64, 64), device)
    used = ttnn.get_memory_view(device, ttnn.BufferType.DRAM).total_bytes_allocated_per_bank
    with ttnn.specs_only():
        result = ttnn.relu(source)
    assert result.dtype is ttnn.bfloat16
    assert ttnn.get_memory_view(device, ttnn.BufferType.DRAM).total_bytes_allocated_per_bank == used


def test_a_capture_that_runs_nothing_reads_zeros(device) -> None:
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
    tensor = ttnn.from_torch(torch.ones(2, 32), layout=ttnn.TILE_LAYOUT, device=device)
    out = ttnn.relu(tensor)
    read = ttnn.to_torch(out)
    captured = ttnn.graph.end_graph_capture()
    assert torch.equal(read, torch.zeros(2, 32)) and captured
    with pytest.raises(RuntimeError, match="no values"):
        ttnn.to_torch(out)


def test_outputs_of_a_captured_graph(device) -> None:
    tensor = ttnn.from_torch(torch.ones(2, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    ttnn.graph.begin_graph_capture()
    kept = ttnn.relu(tensor)
    captured = ttnn.graph.end_graph_capture()
    (info,) = ttnn.graph.extract_output_info(captured)
    assert (list(info.shape), info.type) == ([2, 32], ttnn.BufferType.DRAM) and kept.is_allocated()
    usage = ttnn.graph.extract_resource_usage_per_core(captured, 1)
    assert str(usage).splitlines()[0] == "Peak Memory Usage Per Core:" and "  L1:         " in str(usage)


def test_detailed_buffer_tracing_is_remembered() -> None:
    assert not ttnn.graph.is_detailed_buffer_tracing_enabled()
    ttnn.graph.enable_detailed_buffer_tracing()
    assert ttnn.graph.is_detailed_buffer_tracing_enabled()
    ttnn.graph.disable_detailed_buffer_tracing()


def _node(kind, size, **params):
    return {"counter": 0, "node_type": kind, "params": {"size": str(size)} | params, "connections": []}


CB, DFB, PAD = "circular_buffer_allocate", "dataflow_buffer_allocate", "scratchpad_allocate"
END = {"counter": 0, "node_type": "circular_buffer_deallocate_all", "params": {}, "connections": []}
IN_L1 = {"type": "L1", "max_size_per_bank": "50"}


@pytest.mark.parametrize(
    ("trace", "per_core", "over_all"),  # per core: circular, dataflow, scratchpad, tensors, all
    [
        ([_node(CB, 1024), _node(DFB, 2048), _node(PAD, 512)], (1024, 2048, 512, 0, 3584), 3584),
        ([_node(DFB, 4096, borrows_memory="1"), _node(DFB, 256)], (0, 256, 0, 0, 256), 256),
        ([_node(CB, 1024, globally_allocated="1"), _node(CB, 8)], (8, 0, 0, 0, 8), 1032),
        ([_node(CB, 1024), _node(CB, 8)], (1032, 0, 0, 0, 1032), 1032),
        ([_node(CB, 1024), _node(DFB, 2048), END, _node(CB, 1024), _node(DFB, 1)], (1024, 2048, 0, 0, 3072), 3072),
        ([_node("buffer_allocate", 100, **IN_L1), _node(CB, 8), END], (8, 0, 0, 50, 58), 108),
    ],
)
def test_memory_of_programs_in_a_trace(trace, per_core, over_all):
    usage = ttnn.graph.extract_resource_usage_per_core(trace)
    kinds = (usage.peak_cb, usage.peak_dataflow_buffer, usage.peak_scratchpad, usage.peak_l1, usage.peak_total)
    assert kinds == per_core
    assert ttnn.graph.extract_peak_L1_memory_usage(trace) == over_all
