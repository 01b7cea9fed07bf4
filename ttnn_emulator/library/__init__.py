"""The library's modules around its operations: settings, cluster, tracing, reports, and names kept for old scripts."""

from __future__ import annotations

HERE = "ttnn_emulator.library"
# Which modules of ours supply the names of a module of the library; the first that has a name wins.
SUPPLIED: dict[str, tuple[str, ...]] = {
    "ttnn": (
        f"{HERE}.counter_channel",
        f"{HERE}.global_circular_buffer",
        "ttnn_emulator.sub_devices",
        f"{HERE}.tensor_topology",
        f"{HERE}.device_names",
        f"{HERE}.kernel_timings",
        f"{HERE}.mesh_pictures",
        "ttnn_emulator.execution.light_metal",
    ),
    "ttnn.core": ("ttnn_emulator.queries",),
    "ttnn._ttnn.core": (f"{HERE}.block_float_bytes", "ttnn_emulator.execution.light_metal"),
    "ttnn._ttnn.bfp_utils": (f"{HERE}.block_float_bytes",),
    "ttnn._ttnn.tensor": (f"{HERE}.tensor_files", f"{HERE}.device_names"),
    "ttnn._ttnn.profiler": (f"{HERE}.kernel_timings",),
    "ttnn.operations.moreh": (f"{HERE}.softmax_strategies",),
    "ttnn._ttnn.operations.moreh": (f"{HERE}.softmax_strategies",),
    "ttnn._ttnn.operations.data_movement": ("ttnn_emulator.ops.untilize_kernels",),
    "ttnn.device": ("ttnn_emulator.device", "ttnn_emulator.queries", f"{HERE}.device_names"),
    "ttnn._ttnn.device": (f"{HERE}.device_names", "ttnn_emulator.device"),
    "ttnn.operations.normalization": ("ttnn_emulator.ops.normalization_group_setup",),
    "ttnn._ttnn.graph": ("ttnn_emulator.execution.graph",),
    "ttnn._ttnn.global_semaphore": ("ttnn_emulator.fabric",),
    "ttnn.operations.activations": (f"{HERE}.golden_images",),
    "ttnn.operations.pool": (f"{HERE}.golden_images", f"{HERE}.golden_pools"),
    "ttnn.graph": (f"{HERE}.graph", "ttnn_emulator.execution.graph"),
    "ttnn.graph_tracer_utils": (f"{HERE}.graph_tracer_utils",),
    "ttnn.dot_access": (f"{HERE}.dot_access",),
    "ttnn.model_preprocessing": (
        f"{HERE}.model_preprocessing",
        f"{HERE}.torch_tracer",
        f"{HERE}.tracer_pictures",
    ),
    "ttnn.operation_tracer": (f"{HERE}.operation_tracer",),
    "ttnn.config_serialization": (f"{HERE}.config_serialization",),
    "ttnn.cluster": (f"{HERE}.cluster",),
    "ttnn.tracer": (f"{HERE}.tracer", f"{HERE}.tracer_code", f"{HERE}.tracer_pictures", f"{HERE}.tracer_nodes"),
    "ttnn.torch_tracer": (f"{HERE}.torch_tracer", f"{HERE}.tracer_pictures"),
    "ttnn._ttnn.global_circular_buffer": (f"{HERE}.global_circular_buffer",),
    "ttnn._ttnn.reports": (f"{HERE}.reports",),
    "ttnn._ttnn.multi_device": (f"{HERE}.system_mesh", "ttnn_emulator.mesh"),
    "tt_lib.utils": (f"{HERE}.tt_lib.utils",),
    "tt_lib.fallback_ops": (f"{HERE}.tt_lib.fallback_ops", f"{HERE}.tt_lib.fallback_modules"),
    "tt_lib.fallback_ops.conversion_wrapper": (f"{HERE}.tt_lib.conversion",),
    "tt_lib.fused_ops": (f"{HERE}.tt_lib.fused_ops",),
}
