"""Every operation takes the number of a command queue; aliases of an operation are one object."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn


@pytest.fixture
def tile(device):
    return ttnn.from_torch(torch.ones(32, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)


CALLS = {
    "add": lambda x, **queue: ttnn.add(x, x, **queue),
    "relu": lambda x, **queue: ttnn.relu(x, **queue),
    "max": lambda x, **queue: ttnn.max(x, dim=-1, **queue),
    "typecast": lambda x, **queue: ttnn.typecast(x, ttnn.float32, **queue),
    "to_layout": lambda x, **queue: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT, **queue),
    "to_torch": lambda x, **queue: ttnn.to_torch(x, **queue),
    "from_device": lambda x, **queue: ttnn.from_device(x, **queue),
    "zeros": lambda x, **queue: ttnn.zeros(
        [32, 32], dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=x.device(), **queue
    ),
    "concatenate_heads": lambda x, **queue: ttnn.transformer.concatenate_heads(
        ttnn.reshape(x, (1, 1, 32, 64)), **queue
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("queue", [{"queue_id": 0}, {"cq_id": 0}, {"queue_id": None}, {"queue_id": ttnn.QueueId(0)}])
def test_every_call_takes_a_queue(tile, name: str, queue: dict) -> None:
    assert tuple(CALLS[name](tile, **queue).shape) == tuple(CALLS[name](tile).shape)
    assert ttnn.get_current_command_queue_id_for_thread() is None


def test_the_device_must_have_the_queue(tile) -> None:
    with pytest.raises(RuntimeError, match="command queue 1 does not exist"):
        ttnn.add(tile, tile, queue_id=1)
    with pytest.raises(RuntimeError, match="command queue 1 does not exist"):
        tile.cpu().to(tile.device(), cq_id=1)


@pytest.mark.parametrize("queue", [{"queue_id": "0"}, {"queue_id": -1}, {"queue_id": 256}, {"queue_id": 0, "cq_id": 0}])
def test_other_numbers_are_refused(tile, queue: dict) -> None:
    with pytest.raises(TypeError):
        ttnn.add(tile, tile, **queue)


@pytest.mark.parametrize("alias, name", [("sub", "subtract"), ("mul", "multiply"), ("div", "divide")])
@pytest.mark.parametrize("ending", ["", "_"])
def test_aliases_are_the_same_object(alias: str, name: str, ending: str) -> None:
    assert getattr(ttnn, alias + ending) is getattr(ttnn, name + ending)


@pytest.mark.parametrize("call", [lambda t: t.nothing, lambda t: t.transformer.nothing, lambda t: t.operations.nothing])
def test_unknown_names_raise_attribute_errors(call) -> None:
    with pytest.raises(AttributeError):
        call(ttnn)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, device: x.to(device, queue_id=0),
        lambda x, device: x.to(ttnn.TILE_LAYOUT, device),
        lambda x, device: x.to(layout=ttnn.TILE_LAYOUT),
        lambda x, device: x.to(ttnn.float32),
        lambda x, device: x.to(),
    ],
)
def test_a_tensor_moves_to_a_device_or_a_layout(device, call) -> None:
    host = ttnn.from_torch(torch.ones(5, 7))
    assert host.to(target_layout=ttnn.TILE_LAYOUT).layout is ttnn.TILE_LAYOUT
    assert host.to(device, ttnn.L1_MEMORY_CONFIG, 0).memory_config() == ttnn.L1_MEMORY_CONFIG
    with pytest.raises(TypeError):
        call(host, device)


def test_a_tensor_has_no_length_and_is_true(device) -> None:
    for shape in ((), (0,), (2, 3)):
        x = ttnn.from_torch(torch.zeros(shape), device=device)
        assert x
        with pytest.raises(TypeError):
            len(x)  # type: ignore[arg-type]
    assert [float(ttnn.to_torch(each)) for each in ttnn.from_torch(torch.arange(2.0), device=device)] == [0.0, 1.0]
