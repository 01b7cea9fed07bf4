"""The vector instructions that compiled loops may use: those that numba compiles for, which is this processor's all
unless `NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` say otherwise."""

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
    told = getattr(config, "CPU_FEATURES", None)
    if told is None and getattr(config, "CPU_NAME", None) is None:
        return frozenset(name for name, there in llvm.get_host_cpu_features().items() if there)
    return frozenset(each[1:] for each in (told or "").split(",") if each.startswith("+"))


FLOATS = 16 if has("avx512f", "avx512vl") else 8  # of a vector
MULTIPLIES_FAST = has("avx2", "fma")
MULTIPLIES_PAIRS = FLOATS == 16 and has("avx512bf16")  # dot products of bfloat16 pairs, accumulated in float32
