"""Time per token of decoding with a static cache, compared with eager torch and Inductor in one run.

    python benchmarks/decode.py [--models gpt2,llama] [--lengths 64,1024] [--rounds N] [--no-inductor] [--threads N]

Every round decodes one token with each backend, in rotated order, every second round reversed. A token is uploaded, and
the logits of the last position are downloaded. Times are medians of warm rounds. Models have random weights.
"""

from __future__ import annotations

import argparse
import copy
import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from rich import box
from rich.console import Console
from rich.table import Table

import torch_ttnn  # noqa: F401
from torch_ttnn.workloads.agreement import pcc
from torch_ttnn.zoo.torchvision_ops import ensure_operators

_OPERATORS = ensure_operators()  # transformers imports torchvision
PROMPT, WARM = 8, 8
EAGER, INDUCTOR, TTNN = "eager", "inductor", "ttnn"


def _gpt2(length: int) -> Any:
    from transformers import GPT2Config

    return GPT2Config(n_positions=max(1024, length))


def _llama(length: int) -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(**_SIZES, max_position_embeddings=max(2048, length))


def _qwen2(length: int) -> Any:
    from transformers import Qwen2Config

    return Qwen2Config(**_SIZES, max_position_embeddings=max(2048, length))


def _codegen(length: int) -> Any:
    from transformers import CodeGenConfig

    sizes = {"n_embd": 1024, "n_layer": 12, "n_head": 16, "rotary_dim": 32}
    return CodeGenConfig(**sizes, n_positions=max(2048, length))


_SIZES = {
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
}
MODELS: dict[str, Callable[[int], Any]] = {"gpt2": _gpt2, "llama": _llama, "qwen2": _qwen2, "codegen": _codegen}


def _step(model: Any, tokens: torch.Tensor, cache: Any, position: torch.Tensor) -> torch.Tensor:
    return model(tokens, past_key_values=cache, position_ids=position[None], use_cache=True).logits[:, -1]


class Decoding:
    """One backend with a model and a cache of its own."""

    def __init__(self, backend: str, model: Any, config: Any, length: int, prompt: torch.Tensor) -> None:
        from transformers import StaticCache

        self.device = "ttnn" if backend == TTNN else "cpu"
        self.model = model.to(self.device)
        self.step = _step if backend == EAGER else torch.compile(_step, backend=backend, dynamic=False)
        self.cache = StaticCache(config, max_cache_len=length)
        self.run(prompt, torch.arange(prompt.shape[1]))

    def run(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.step(self.model, tokens.to(self.device), self.cache, positions.to(self.device)).cpu()


def measured(name: str, length: int, backends: list[str], rounds: int) -> tuple[dict[str, float], float]:
    """The seconds per token of each backend, and the lowest PCC of the device's logits with eager's."""
    from transformers import AutoModelForCausalLM

    torch._dynamo.reset()
    torch.manual_seed(0)
    config = MODELS[name](length)
    model = AutoModelForCausalLM.from_config(config).eval()
    rounds = min(rounds, length - PROMPT - WARM)
    tokens = torch.randint(0, config.vocab_size, (1, PROMPT + WARM + rounds))
    running = {each: Decoding(each, copy.deepcopy(model), config, length, tokens[:, :PROMPT]) for each in backends}
    times: dict[str, list[float]] = {each: [] for each in backends}
    worst = 1.0
    for number in range(WARM + rounds):
        place = PROMPT + number
        token, position = tokens[:, place : place + 1], torch.tensor([place])
        order = backends[number % len(backends) :] + backends[: number % len(backends)]
        results = {}
        for each in order if number % 2 else reversed(order):
            start = time.perf_counter()
            results[each] = running[each].run(token, position)
            if number >= WARM:
                times[each].append(time.perf_counter() - start)
        worst = min(worst, pcc(results[TTNN], results[EAGER]))
    del running
    gc.collect()
    return {each: statistics.median(found) for each, found in times.items()}, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--lengths", default="64,1024", help="of the cache")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--no-inductor", action="store_true")
    parser.add_argument("--threads", type=int)
    chosen = parser.parse_args()
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    backends = [EAGER, TTNN] if chosen.no_inductor else [EAGER, INDUCTOR, TTNN]
    table = Table(box=box.SIMPLE_HEAD)
    peers = [each for each in backends if each != TTNN]
    for title in ("model", "cache", *[f"{each}, ms" for each in backends], *[f"÷ {each}" for each in peers], "PCC"):
        table.add_column(title, justify="left" if title == "model" else "right")
    for name in chosen.models.split(","):
        for length in map(int, chosen.lengths.split(",")):
            seconds, worst = measured(name, length, backends, chosen.rounds)
            ratios = [f"{seconds[TTNN] / seconds[each]:.2f}" for each in peers]
            table.add_row(
                name, str(length), *[f"{1e3 * seconds[each]:.1f}" for each in backends], *ratios, f"{worst:.5f}"
            )
    Console().print(table)


if __name__ == "__main__":
    main()
