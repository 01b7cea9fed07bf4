"""Compiles the slowest kernels before they are needed: `python -m ttnn_emulator.numerics.native.compile_ahead GROUP`.

Kernels are JIT-compiled by numba on their first call and cached on disk. A process compiles one kernel at a time, and
the kernels of a text model take half a minute. Groups compile in separate processes and share the cache on disk.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def _products(ttnn: Any, device: Any) -> None:
    """Matrix products, then attention, which uses the same loops."""
    import torch

    from ttnn_emulator.numerics.kernels import products as product_kernels

    _ = product_kernels.multiply_pieces.address
    heads = [_on_device(ttnn, device, torch.randn(1, 2, 384, 64)) for _ in range(3)]
    ttnn.transformer.scaled_dot_product_attention(*heads, is_causal=False)


def _others(ttnn: Any, device: Any) -> None:
    """Packing of left operands, products of few rows, convolutions, broadcast sums and norms."""
    import torch

    from ttnn_emulator.numerics.kernels import few_row_products as few_rows
    from ttnn_emulator.numerics.kernels import products as product_kernels
    from ttnn_emulator.numerics.programs.convolution import direct as direct_convolution

    for loop in (product_kernels.pack_left_pieces, few_rows.multiply_pieces, direct_convolution.convolve_pieces):
        _ = loop.address
    x, row = (_on_device(ttnn, device, torch.randn(size)) for size in ((384, 1024), (1, 1024)))
    ttnn.to_torch(ttnn.add(x, row))
    ttnn.layer_norm(x, weight=row, bias=row)


def _on_device(ttnn: Any, device: Any, values: Any) -> Any:
    return ttnn.from_torch(values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)


GROUPS: dict[str, Callable[[Any, Any], None]] = {"products": _products, "others": _others}


def main(group: str) -> None:
    import ttnn_emulator

    with ttnn_emulator.open_device(device_id=0) as device:
        GROUPS[group](ttnn_emulator, device)


if __name__ == "__main__":
    main(sys.argv[1])
