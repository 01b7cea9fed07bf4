"""Caches on `ttnn` that compiled functions write at a position: in place, with torch's results and errors."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch

from torch_ttnn.eager.device.boards import board_of
from torch_ttnn.workloads.agreement import pcc
from torch_ttnn.zoo.torchvision_ops import ensure_operators

_OPERATORS = ensure_operators()  # transformers imports torchvision

LENGTH = 64
IN_PLACE = "ttnn.experimental.paged_update_cache"
WHOLE = ("ttnn.scatter", "ttnn.where")


def attended(cache: torch.Tensor, at: torch.Tensor, x: torch.Tensor) -> Any:
    cache.index_copy_(2, at, x)
    return x @ cache.transpose(2, 3)


def with_old_values(cache: torch.Tensor, at: torch.Tensor, x: torch.Tensor) -> Any:
    old = cache * 2
    cache.index_copy_(2, at, x)
    return old, cache + 1


def with_aliases(cache: torch.Tensor, at: torch.Tensor, x: torch.Tensor) -> Any:
    cache.index_copy_(2, at, x)
    return cache, cache[:, :, 1:3], cache.clone()


def with_requirement(cache: torch.Tensor, at: torch.Tensor, x: torch.Tensor) -> Any:
    cache.index_copy_(2, at, x)
    return torch.sin(cache * 1e3)


def with_host_operation(cache: torch.Tensor, at: torch.Tensor, x: torch.Tensor) -> Any:
    cache.index_copy_(2, at, x)
    return torch.linalg.inv(cache[0, 0, :4, :4] + 9 * torch.eye(4, device=x.device))


def written_twice(cache: torch.Tensor, at: torch.Tensor, x: torch.Tensor) -> Any:
    cache.index_copy_(2, at, x)
    cache.index_copy_(2, at + 1, x * 2)
    return cache + 1


FUNCTIONS: dict[str, tuple[Callable[..., Any], bool]] = {
    "read after it is written": (attended, True),
    "old values are read": (with_old_values, False),
    "returned, with views and copies": (with_aliases, True),
    "a requirement may fail": (with_requirement, False),
    "a host operation may fail": (with_host_operation, False),
    "written twice": (written_twice, False),
}


def _arguments(device: str, dtype: torch.dtype, batch: int, position: int, seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    x = torch.randn(batch, 3, 1, 32).to(dtype)
    return [torch.tensor([position]).to(device), x.to(device)]


def _cache(dtype: torch.dtype, batch: int) -> torch.Tensor:
    torch.manual_seed(5)
    return torch.randn(batch, 3, LENGTH, 32).bfloat16().to(dtype)


def _assert_close(ours: torch.Tensor, torchs: torch.Tensor) -> None:
    ours, torchs = ours.cpu().float(), torchs.float()
    assert ours.shape == torchs.shape
    assert torch.allclose(ours, torchs, atol=5e-2, rtol=3e-2), (ours - torchs).abs().max()


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("function", "in_place"), FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_functions(function: Callable[..., Any], in_place: bool, dtype: torch.dtype, batch: int) -> None:
    torch._dynamo.reset()
    torchs, ours = _cache(dtype, batch), _cache(dtype, batch).to("ttnn")
    compiled = torch.compile(function, backend="ttnn")
    calls: Counter[str] = Counter()
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    border = board_of().target.border
    with torch.no_grad(), warnings.catch_warnings(), border.listening(lambda path, *_: calls.update([path])):
        warnings.simplefilter("ignore")
        for number, position in enumerate((0, 7, 31, 32, 62)):
            expected = function(torchs, *_arguments("cpu", dtype, batch, position, number))
            made = compiled(ours, *_arguments("ttnn", dtype, batch, position, number))
            pairs = [(made, expected)] if isinstance(made, torch.Tensor) else list(zip(made, expected))
            seen += [
                (one, other) if other._is_view() or other is torchs else (one, other.clone()) for one, other in pairs
            ]
            _assert_close(ours, torchs)
    for one, other in seen:
        _assert_close(one, other)
    assert bool(calls[IN_PLACE]) == in_place
    assert not (in_place and any(calls[path] for path in WHOLE))


def test_a_position_beyond_the_cache_raises_torchs_error_and_changes_nothing() -> None:
    torch._dynamo.reset()
    cache = _cache(torch.float32, 1).to("ttnn")
    compiled = torch.compile(attended, backend="ttnn")
    with torch.no_grad():
        compiled(cache, *_arguments("ttnn", torch.float32, 1, 3, 0))
        before = cache.cpu()
        for position in (LENGTH, -1):
            with pytest.raises(IndexError):
                compiled(cache, *_arguments("ttnn", torch.float32, 1, position, 1))
            assert torch.equal(cache.cpu(), before)


def test_two_caches_in_turn_and_one_after_the_other() -> None:
    torch._dynamo.reset()
    torchs = [_cache(torch.bfloat16, 1) for _ in range(2)]
    ours = [each.clone().to("ttnn") for each in torchs]
    compiled = torch.compile(attended, backend="ttnn")
    with torch.no_grad():
        for number, which in enumerate((0, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1)):
            expected = attended(torchs[which], *_arguments("cpu", torch.bfloat16, 1, number, number))
            made = compiled(ours[which], *_arguments("ttnn", torch.bfloat16, 1, number, number))
            _assert_close(made, expected)
    for one, other in zip(ours, torchs):
        _assert_close(one, other)


# -- models -----------------------------------------------------------------------------------------------------------


def _configured(name: str) -> Any:
    import transformers

    small = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2}
    common = {"num_hidden_layers": 2, "vocab_size": 90, **small}
    configs: dict[str, Callable[[], Any]] = {
        "llama": lambda: transformers.LlamaConfig(**common, head_dim=32),
        "qwen2": lambda: transformers.Qwen2Config(**common, head_dim=32),
        "gpt2": lambda: transformers.GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=90),
        "codegen": lambda: transformers.CodeGenConfig(n_layer=2, n_embd=128, n_head=4, rotary_dim=16, vocab_size=90),
    }
    config = configs[name]()
    return config, transformers.AutoModelForCausalLM.from_config(config).eval()


def _count(calls: Counter[str], path: str, *_: Any) -> None:
    calls[path] += 1


def _step(model: Any, tokens: torch.Tensor, cache: Any, position: torch.Tensor) -> torch.Tensor:
    return model(tokens, past_key_values=cache, position_ids=position[None], use_cache=True).logits[:, -1]


def _generated(model: Any, step: Callable[..., torch.Tensor], config: Any, device: str, tokens: torch.Tensor) -> tuple:
    from transformers import StaticCache

    cache, made, calls = StaticCache(config, max_cache_len=LENGTH), [], []
    with torch.no_grad():
        made.append(step(model, tokens[:, :8].to(device), cache, torch.arange(8).to(device)).cpu())
        for place in range(8, tokens.shape[1]):
            calls.append(Counter())
            given = tokens[:, place : place + 1].to(device), cache, torch.tensor([place]).to(device)
            with board_of().target.border.listening(functools.partial(_count, calls[-1])):
                result = step(model, *given)
            made.append(result.cpu())
    return torch.stack(made), cache, calls


@pytest.mark.parametrize("name", ["llama", "qwen2", "gpt2", "codegen"])
def test_decoding(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setenv("TORCH_TTNN_VERIFY", "full")
    torch._dynamo.reset()
    torch.manual_seed(0)
    config, model = _configured(name)
    tokens = torch.randint(0, 90, (1, 16))
    wanted, _, _ = _generated(model, _step, config, "cpu", tokens)
    compiled = torch.compile(_step, backend="ttnn", dynamic=False)
    made, cache, calls = _generated(model.to("ttnn"), compiled, config, "ttnn", tokens)
    assert sum(calls, Counter())[IN_PLACE] >= 2 * config.num_hidden_layers
    assert min(pcc(one, other) for one, other in zip(made, wanted)) > 0.999
    assert float((made - wanted).norm() / wanted.norm()) < 0.03
    for counted in calls[4:]:  # a replay, and copies of its small inputs
        assert counted["ttnn.execute_trace"] == 1
        assert not any(counted[path] for path in ("ttnn.from_torch", "ttnn.to_torch", *WHOLE, IN_PLACE))
        assert counted["ttnn.copy"] + counted["ttnn.clone"] <= 4
    assert cache.layers[0].keys.device.type == "ttnn"
