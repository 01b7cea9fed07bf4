"""The vector instructions that compiled loops may use: those of numba's target, which is this processor unless
`NUMBA_CPU_NAME` or `NUMBA_CPU_FEATURES` is set."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm
from numba.core import config


@functools.cache
def has(*features: str) -> bool:
    """Whether the target has all of these features, by LLVM's names."""
    return all(feature in _features() for feature in features)


@functools.cache
def _features() -> frozenset[str]:
    configured = getattr(config, "CPU_FEATURES", None)
    if configured is None and getattr(config, "CPU_NAME", None) is None:
        return frozenset(name for name, present in llvm.get_host_cpu_features().items() if present)
    return frozenset(each[1:] for each in (configured or "").split(",") if each.startswith("+"))


FLOATS = 16 if has("avx512f", "avx512vl") else 8  # per vector register
MULTIPLIES_FAST = has("avx2", "fma")
MULTIPLIES_PAIRS = FLOATS == 16 and has("avx512bf16")  # dot products of bfloat16 pairs, accumulated in float32
