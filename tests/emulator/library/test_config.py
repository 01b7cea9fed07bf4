"""`ttnn.Config` and other names used by the fixtures of the library's tests."""

from __future__ import annotations

import pathlib

import pytest

import ttnn_emulator as ttnn


def test_a_copy_of_a_config_is_independent() -> None:
    original = ttnn.Config()
    copy = ttnn.Config(original)
    copy.report_name = "x"
    assert original.report_name is None and original.report_path is None
    assert copy.report_name == pathlib.Path("x")
    assert str(copy.report_path).startswith("generated/ttnn/reports/x_")


def test_report_folders_are_named_after_reports() -> None:
    config = ttnn.Config()
    config.report_name = "tests/ttnn/a.py::test[x=1]: 2026 (UTC)"
    assert config.report_path.name.startswith("tests_ttnn_a_py_test_x_1_2026_utc_")


REFUSED = [("enable_logging", 1), ("cache_path", None), ("comparison_mode_pcc", "high")]


@pytest.mark.parametrize("name, value", REFUSED)
def test_values_of_another_type_are_refused(name, value) -> None:
    with pytest.raises(TypeError, match=name):
        setattr(ttnn.Config(), name, value)


def test_unknown_settings_are_refused() -> None:
    config = ttnn.Config()
    with pytest.raises(AttributeError):
        config.nonsense = 1
    with pytest.raises(RuntimeError, match="Unknown configuration key: nonsense"):
        config.apply_json_overrides('{"nonsense": 1}')
    with pytest.warns(UserWarning, match="nonsense"):
        config.apply_json_overrides('{"nonsense": 1, "strict_ccl_topology": true}', strict=False)
    assert config.strict_ccl_topology


def test_settings_survive_a_file(tmp_path) -> None:
    config = ttnn.Config()
    config.enable_model_cache = True
    config.save_to_file(tmp_path / "config.json")
    read = ttnn.Config()
    read.load_from_file(tmp_path / "config.json")
    assert repr(read) == repr(config)


def test_the_assigned_config_is_used(monkeypatch) -> None:
    monkeypatch.setattr(ttnn, "CONFIG", ttnn.Config(ttnn.CONFIG))
    with ttnn.manage_config("report_name", "here"):
        assert ttnn.CONFIG.report_name == pathlib.Path("here")
    assert ttnn.CONFIG.report_name is None


def test_comparison_records_are_stored_until_reset() -> None:
    ttnn.graph.record_tensor_comparison_data(tensors=[{"tensor_id": 1}, {"tensor_id": 1}])
    assert ttnn.graph.has_comparison_records()
    ttnn.graph.reset_comparison_records_data()
    assert not ttnn.graph.has_comparison_records()


def test_tracing_is_refused_in_fast_runtime_mode() -> None:
    ttnn.tracer.disable_tracing()
    with pytest.raises(ValueError, match="fast runtime mode"):
        ttnn.tracer.enable_tracing()


def test_the_cluster_and_its_mesh(monkeypatch) -> None:
    assert ttnn.cluster.get_cluster_type() is ttnn.cluster.ClusterType.N150
    monkeypatch.setenv("TTNN_EMULATOR_BOARD", "t3000")
    assert ttnn.cluster.get_cluster_type() is ttnn.cluster.ClusterType.T3K
    system = ttnn._ttnn.multi_device.SystemMeshDescriptor()
    assert list(system.shape()) == [2, 4] and system.all_local()
    assert system.get_device_id(ttnn.MeshCoordinate(1, 0)) == 4


def test_a_mesh_lists_its_submeshes() -> None:
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 2))
    part = mesh.create_submesh(ttnn.MeshShape(1, 1))
    assert mesh.get_submeshes() == [part]
    ttnn.close_mesh_device(mesh)
