"""`make run`: a transformer block on an emulated card, compared with torch, with its memory use and calls."""

from __future__ import annotations

import math

import torch
from rich.console import Console
from rich.table import Table

import ttnn_emulator as ttnn

HIDDEN, HEADS, TOKENS = 256, 4, 128


def torch_block(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """One pre-norm transformer block in float32."""
    normed = torch.nn.functional.layer_norm(x, (HIDDEN,), weights["gamma"].reshape(-1), weights["beta"].reshape(-1))
    q, k, v = (normed @ weights["qkv"]).chunk(3, -1)
    split = lambda t: t.reshape(1, TOKENS, HEADS, HIDDEN // HEADS).transpose(1, 2)  # noqa: E731
    attended = torch.nn.functional.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=True)
    x = x + attended.transpose(1, 2).reshape(1, TOKENS, HIDDEN) @ weights["out"]
    return x + torch.nn.functional.gelu(x @ weights["up"]) @ weights["down"]


def device_block(x: ttnn.Tensor, weights: dict[str, ttnn.Tensor]) -> ttnn.Tensor:
    """The same block as a TT-NN program."""
    normed = ttnn.layer_norm(x, weight=weights["gamma"], bias=weights["beta"], epsilon=1e-5)
    fused = ttnn.linear(normed, weights["qkv"])
    q, k, v = ttnn.transformer.split_query_key_value_and_split_heads(fused, num_heads=HEADS, transpose_key=False)
    attended = ttnn.transformer.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = ttnn.add(x, ttnn.linear(ttnn.transformer.concatenate_heads(attended), weights["out"]))
    return ttnn.add(x, ttnn.linear(ttnn.linear(x, weights["up"], activation="gelu"), weights["down"]))


def show() -> None:
    """Run both and print results, memory use and calls."""
    console = Console()
    torch.manual_seed(0)
    sizes = {"qkv": (HIDDEN, 3 * HIDDEN), "out": (HIDDEN, HIDDEN), "up": (HIDDEN, 1024), "down": (1024, HIDDEN)}
    weights = {name: torch.randn(shape) / math.sqrt(shape[0]) for name, shape in sizes.items()}
    weights |= {"gamma": torch.ones(1, HIDDEN), "beta": torch.zeros(1, HIDDEN)}
    x = torch.randn(1, TOKENS, HIDDEN)
    reference = torch_block(x, weights)
    with ttnn.open_device(device_id=0) as device:

        def upload(values: torch.Tensor, dtype: ttnn.DataType) -> ttnn.Tensor:
            return ttnn.from_torch(values, dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)

        headings = ("weights in", "DRAM they take", "PCC with float32", "largest error", "programs")
        table = Table(*headings, box=None)
        for name in ("bfloat16", "bfloat8_b", "bfloat4_b"):
            placed = {
                key: upload(value, ttnn.bfloat16 if value.shape[0] == 1 else getattr(ttnn, name))
                for key, value in weights.items()
            }
            view = ttnn.get_memory_view(device, ttnn.BufferType.DRAM)
            used = view.total_bytes_allocated_per_bank * view.num_banks / 2**20
            result = ttnn.to_torch(device_block(upload(x, ttnn.bfloat16), placed)).float()
            pcc = torch.corrcoef(torch.stack([result.flatten(), reference.flatten()]))[0, 1].item()
            programs = str(device.num_program_cache_entries())
            error = f"{(result - reference).abs().max():.2f}"
            table.add_row(name, f"{used:.2f} MiB", f"{pcc:.4f}", error, programs)
            device.clear_program_cache()
            del placed
        console.print(f"One transformer block on an emulated {device.board.name}:")
        console.print(table)
