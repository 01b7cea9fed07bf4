"""Parameters of models are stored atomically in files without code."""

from __future__ import annotations

import pathlib
import pickle

import pytest
import torch

from ttnn_emulator.library.models.module_args import MaxPool2dArgs
from ttnn_emulator.library.models.parameter_cache import cached
from ttnn_emulator.library.models.parameters import ParameterDict, ParameterList


def parameters() -> ParameterDict:
    pool = MaxPool2dArgs({"kernel_size": (2, 2), "stride": 2})
    layers = ParameterList([ParameterDict({"weight": torch.zeros(1)})])
    return ParameterDict({"weight": torch.ones(2), "pool": pool, "layers": layers})


def test_stored_parameters_are_read(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "model" / "a"
    cached(folder, "1", parameters)
    read = cached(folder, "1", lambda: pytest.fail("it is kept"))
    assert torch.equal(read["weight"], torch.ones(2))
    assert dict(read["pool"]) == {"kernel_size": (2, 2), "stride": 2}
    assert read["layers"][0]["weight"].shape == (1,)


def test_an_interrupted_write_keeps_the_old_files(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "a"
    cached(folder, "1", parameters)
    with pytest.raises(RuntimeError, match="cannot be stored in files"):
        cached(folder, "2", lambda: ParameterDict({"weight": torch.ones(2), "odd": object()}))
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert torch.equal(cached(folder, "1", parameters)["weight"], torch.ones(2))


class Malicious:
    def __reduce__(self):
        return (pytest.fail, ("a file ran code",))


@pytest.mark.parametrize("name", ["weight.pt", "pool.max_pool2d_module_args"])
def test_a_file_cannot_run_code(name: str, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "a"
    cached(folder, "1", parameters)
    (folder / name).write_bytes(pickle.dumps(Malicious()))
    with pytest.raises((pickle.UnpicklingError, ValueError, RuntimeError)):
        cached(folder, "1", parameters)
