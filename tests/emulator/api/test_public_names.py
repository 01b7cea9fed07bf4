"""Names of the library: which resolve, which raise `NotEmulated`, and results of small functions.

Expected results are those of the library on a mock card.
"""

from __future__ import annotations

import re

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.api.recorded import public_names
from ttnn_emulator.conformance import lacking
from ttnn_emulator.execution.operation_table import AbsentValue, MissingOperation
from ttnn_emulator.namespaces import attribute


def resolved() -> dict[str, str]:
    kept = {}
    for name, kind in public_names().items():
        try:
            kept[name] = "absent" if isinstance(attribute(name), MissingOperation) else kind
        except AbsentValue:
            kept[name] = "absent"
    return kept


NAMES = resolved()


def test_every_name_of_the_library_resolves_or_raises_not_emulated() -> None:
    for name in (name for name, kind in NAMES.items() if kind == "absent"):
        try:
            missing = attribute(name)
            with pytest.raises(ttnn.NotEmulated, match=re.escape(missing.name)):
                missing()
        except AbsentValue as error:
            assert name.rsplit(".", 1)[-1] in str(error)


def test_unknown_names_raise_attribute_error() -> None:
    for path in ("ttnn.nonsense", "ttnn.device.nonsense", "ttnn.graph.nonsense", "ttnn.experimental.nonsense"):
        with pytest.raises(AttributeError, match="nonsense"):
            attribute(path)
    assert not hasattr(ttnn, "D2D_STAGE_GATE_UNGATED_SLOT")
    assert not hasattr(ttnn, "pad_to_tile_shape")


def test_classes_are_classes_and_functions_can_be_called() -> None:
    for name, kind in NAMES.items():
        if kind == "class" or kind == "function":
            assert callable(attribute(name)), name


SAME = [(name, kind[2:]) for name, kind in public_names().items() if kind.startswith("= ") and NAMES[name] != "absent"]


def test_aliases_are_the_same_object() -> None:
    assert [pair for pair in SAME if attribute(pair[0]) is not attribute(pair[1])] == []
    assert ttnn.sub is ttnn.subtract and ttnn.divide is ttnn.div


def test_every_name_that_is_not_emulated_has_a_reason() -> None:
    found, unexplained = lacking.grouped(lacking.lacking_names())
    assert unexplained == []
    assert [group for group, names in found.items() if not names] == []


def test_every_pattern_of_a_reason_matches_a_name() -> None:
    names = lacking.lacking_names()
    patterns = [pattern for group in lacking.groups() for pattern in group["names"]]
    assert [pattern for pattern in patterns if not any(re.search(pattern, name) for name in names)] == []


# Classes that are emulated without some of their members.
INCOMPLETE = {
    "ttnn.CoreCoord", "ttnn.CoreRange", "ttnn.NdShardSpec", "ttnn.CppTensorToMesh", "ttnn.Device", "ttnn.FabricType",
    "ttnn.MeshCoordinate", "ttnn.TensorSpec", "ttnn.experimental.fabric_mux.Config",
    "ttnn._ttnn.layer_completion.LayerCompletionRouter", "ttnn._ttnn.operations.complex.ComplexTensor",
}  # fmt: skip


def test_classes_have_the_members_of_the_library() -> None:
    assert set(lacking.lacking_members()) <= INCOMPLETE
    assert ttnn.NOC.NOC_0.value == 0
    assert ttnn.FabricRouterConfig().max_packet_payload_size_bytes is None
    with pytest.raises(ttnn.NotEmulated, match=r"KernelDescriptor\.clear_runtime_args"):
        ttnn.KernelDescriptor.clear_runtime_args(None)


def test_operations_that_are_not_emulated_check_their_signature() -> None:
    lacking_one = ttnn.experimental.ring_indexer_score_dsa
    with pytest.raises(TypeError, match="cluster_axis"):
        lacking_one(None, None, None, None, [])
    with pytest.raises(ttnn.NotEmulated, match="ring_indexer_score_dsa") as refusal:
        lacking_one(None, None, None, None, [], cluster_axis=0, topology=None)
    assert not isinstance(refusal.value, TypeError)


def test_the_package_has_only_listed_names_of_its_own() -> None:
    assert set(lacking.own_names()) <= lacking.OWN_NAMES


def test_values_and_bound_functions_are_those_of_ttnn() -> None:
    assert ttnn.types.bfloat16 is ttnn.bfloat16
    assert ttnn._ttnn.device.get_arch_name() == "wormhole_b0"
    assert ttnn._ttnn.operations.binary.add is ttnn.add
    assert ttnn.types.BlackholeComputeKernelConfig is ttnn.WormholeComputeKernelConfig
    assert ttnn.ttnn is ttnn


# -- dtypes and tensors -----------------------------------------------------------------------------------------------

SIZES = {"bfloat16": (2048, 2), "float32": (4096, 4), "bfloat8_b": (1088, None), "bfloat4_b": (576, None),
         "uint8": (1024, 1), "uint16": (2048, 2), "uint32": (4096, 4), "int32": (4096, 4)}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name) -> None:
    dtype, (tile, element) = getattr(ttnn, name), SIZES[name]
    assert ttnn.tile_size(dtype) == tile
    if element is None:
        with pytest.raises(ValueError, match="no size"):
            ttnn.element_size(dtype)
    else:
        assert ttnn.element_size(dtype) == element


def test_tensor_queries(device) -> None:
    tensor = ttnn.from_torch(torch.ones(5, 33), layout=ttnn.TILE_LAYOUT, device=device)
    host = ttnn.from_torch(torch.ones(5, 32))
    assert ttnn.get_memory_config(tensor) == ttnn.DRAM_MEMORY_CONFIG
    assert ttnn.get_memory_config(host) is None
    assert ttnn.is_tensor_storage_on_device(tensor) and not ttnn.is_tensor_storage_on_device(host)
    assert ttnn.has_storage_type_of(host, ttnn.StorageType.HOST)
    assert ttnn.has_tile_padding(tensor) and not ttnn.has_tile_padding(host)
    assert ttnn.has_tile_padding(tensor, dim=-1)
    assert not ttnn.is_sharded(tensor)
    assert ttnn.ttnn_dtype_to_torch_dtype(ttnn.bfloat8_b) is torch.float32


# -- cores ------------------------------------------------------------------------------------------------------------


def test_grid_to_cores() -> None:
    def listed(*args) -> list[str]:
        return [str(core) for core in ttnn.grid_to_cores(*args)]

    assert listed(5, 3, 2) == ["0-0", "0-1", "1-0", "1-1", "2-0"]
    assert listed(5, 3, 2, True) == ["0-0", "1-0", "2-0", "0-1", "1-1"]
    assert listed(0, 3, 2) == []
    corners = ttnn.CoreCoord(1, 1), ttnn.CoreCoord(2, 3)
    assert listed(*corners) == ["1-1", "1-2", "1-3", "2-1", "2-2", "2-3"]
    assert listed(*corners, True) == ["1-1", "2-1", "1-2", "2-2", "1-3", "2-3"]


def core_range(*corners: int) -> ttnn.CoreRange:
    return ttnn.CoreRange(ttnn.CoreCoord(*corners[:2]), ttnn.CoreCoord(*corners[2:]))


PART = ttnn.CoreRangeSet([core_range(1, 1, 3, 2)])
TWO = ttnn.CoreRangeSet([core_range(0, 0, 3, 0), core_range(1, 2, 3, 3)])
SPLITS = [
    ((ttnn.CoreCoord(8, 8), 100), "(64, {[0-0 - 7-7]}, {[0-0 - 3-7], [4-0 - 4-3]}, {[4-4 - 4-7], [5-0 - 7-7]}, 2, 1)"),
    ((ttnn.CoreCoord(8, 8), 100, True),
     "(64, {[0-0 - 7-7]}, {[0-0 - 7-3], [0-4 - 3-4]}, {[4-4 - 7-4], [0-5 - 7-7]}, 2, 1)"),
    ((ttnn.CoreCoord(8, 8), 5), "(5, {[0-0 - 0-4]}, {[0-0 - 0-4]}, {}, 1, 0)"),
    ((ttnn.CoreCoord(4, 2), 16), "(8, {[0-0 - 3-1]}, {[0-0 - 3-1]}, {}, 2, 0)"),
    ((ttnn.CoreCoord(4, 2), 0), "(0, {}, {}, {}, 0, 0)"),
    ((PART, 8), "(6, {[1-1 - 3-2]}, {[1-1 - 1-2]}, {[2-1 - 3-2]}, 2, 1)"),
    ((PART, 8, True), "(6, {[1-1 - 3-2]}, {[1-1 - 2-1]}, {[3-1 - 3-1], [1-2 - 3-2]}, 2, 1)"),
    ((PART, 3, True), "(3, {[1-1 - 3-1]}, {[1-1 - 3-1]}, {}, 1, 0)"),
    ((TWO, 23, True), "(10, {[0-0 - 3-0], [1-2 - 3-3]}, {[0-0 - 2-0]}, {[3-0 - 3-0], [1-2 - 3-3]}, 3, 2)"),
]  # fmt: skip


@pytest.mark.parametrize("arguments, answer", SPLITS)
def test_split_work_to_cores(arguments, answer) -> None:
    assert str(ttnn.split_work_to_cores(*arguments)) == answer


def test_cores_of_a_part_of_the_grid() -> None:
    def taken(start: tuple[int, int], row_wise: bool) -> str:
        return str(ttnn.num_cores_to_corerangeset_in_subcoregrids(ttnn.CoreCoord(*start), 4, PART, row_wise))

    assert taken((1, 1), True) == "{[1-1 - 3-1], [1-2 - 1-2]}"
    assert taken((1, 1), False) == "{[1-1 - 2-2]}"
    assert taken((2, 1), True) == "{[2-1 - 3-1], [1-2 - 2-2]}"


def test_cores_near_dram(device) -> None:
    cores = ttnn.get_optimal_dram_bank_to_logical_worker_assignment(device, ttnn.NOC.RISCV_0_default)
    assert [str(core) for core in cores[:3]] == ["3-7", "0-0", "0-4"]
    assert len(set(map(str, cores))) == 12
    shards = ttnn.ShardSpec(PART, [32, 32], ttnn.ShardOrientation.ROW_MAJOR)
    config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)
    tensor = ttnn.from_torch(torch.ones(192, 32), layout=ttnn.TILE_LAYOUT, device=device, memory_config=config)
    workers = ttnn.get_optimal_worker_cores_for_sharded_tensor(tensor)
    assert [str(core) for core in workers] == ["1-1", "2-1", "3-1", "1-2", "2-2", "3-2"]
    with pytest.raises(RuntimeError, match="must be on device"):
        ttnn.get_optimal_worker_cores_for_sharded_tensor(ttnn.from_device(tensor))


# -- settings ---------------------------------------------------------------------------------------------------------


def test_compute_kernel_configs(device) -> None:
    config = ttnn.init_device_compute_kernel_config(device.arch(), math_fidelity=ttnn.MathFidelity.HiFi2)
    assert (config.math_fidelity, config.math_approx_mode) == (ttnn.MathFidelity.HiFi2, True)
    given = ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.HiFi3)
    kept = ttnn.init_device_compute_kernel_config(device.arch(), given, math_approx_mode=False)
    assert kept.math_fidelity is ttnn.MathFidelity.HiFi3 and kept.math_approx_mode
    layer = ttnn.layernorm_default_compute_config(device.arch())
    assert layer.fp32_dest_acc_en and not layer.math_approx_mode
    rms = ttnn.rmsnorm_default_compute_config(device.arch())
    assert rms.math_approx_mode and not rms.fp32_dest_acc_en and rms.math_fidelity is ttnn.MathFidelity.HiFi4


def test_config_is_set_and_restored(tmp_path) -> None:
    assert ttnn.CONFIG.enable_fast_runtime_mode
    with ttnn.manage_config("enable_fast_runtime_mode", False):
        assert not ttnn.CONFIG.enable_fast_runtime_mode
        ttnn.save_config_to_json_file(tmp_path / "config.json")
    assert ttnn.CONFIG.enable_fast_runtime_mode
    ttnn.load_config_from_json_file(tmp_path / "config.json")
    assert not ttnn.CONFIG.enable_fast_runtime_mode
    ttnn.load_config_from_dictionary({"enable_fast_runtime_mode": True})
    with pytest.raises(ValueError, match="speed"):
        ttnn.load_config_from_dictionary({"speed": 1})


def test_device_queries(device) -> None:
    assert ttnn.get_allocator_base_address(device, ttnn.BufferType.L1) == 105824
    assert ttnn.get_allocator_base_address(device, ttnn.BufferType.DRAM) == 1048640
    assert ttnn.get_device_ids() == list(range(ttnn.get_num_devices()))
    assert ttnn.get_num_pcie_devices() == len(ttnn.get_pcie_device_ids())
    assert not ttnn.using_distributed_env()
    assert (ttnn.distributed_context_get_rank(), ttnn.distributed_context_get_size()) == (0, 1)


def test_pearson_correlation() -> None:
    values = torch.randn(100)
    assert ttnn.pearson_correlation_coefficient(values, values * 2 + 1) == pytest.approx(1.0)
    assert ttnn.pearson_correlation_coefficient(values, -values) == pytest.approx(-1.0)
    assert ttnn.pearson_correlation_coefficient(values, torch.zeros(100)) == 0.0


def test_layer_norm_reciprocals(device) -> None:
    table = ttnn.create_layer_norm_reciprocals(device, PART, 64)
    assert list(table.shape) == [6, 64]
    assert torch.allclose(ttnn.to_torch(table)[3], 1 / torch.arange(1.0, 65.0))


def test_durations_of_a_captured_graph(device) -> None:
    tensor = ttnn.from_torch(torch.ones(32, 32), layout=ttnn.TILE_LAYOUT, device=device)
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
    ttnn.relu(tensor)
    captured = ttnn.graph.end_graph_capture()
    durations = ttnn.graph.extract_operation_durations(captured)
    assert durations["ttnn.relu"] > 0
    assert ttnn.graph.extract_total_duration_from_graph(captured) >= durations["ttnn.relu"]
