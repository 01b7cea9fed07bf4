"""Short descriptions of torch's tensors and dtypes, for reports and errors."""

from __future__ import annotations

from typing import Any

import torch


def dtype_name(dtype: torch.dtype) -> str:
    """
    >>> dtype_name(torch.float32)
    'float32'
    """
    return str(dtype).removeprefix("torch.")


def shape_and_dtype(tensor: Any) -> str:
    """Shape and dtype of a tensor, or of anything else that has both.

    >>> shape_and_dtype(torch.ones(2, 3))
    '[2, 3] float32'
    """
    return f"{list(tensor.shape)} {dtype_name(tensor.dtype)}"
