"""The families of fusions, in the order in which they run."""

from __future__ import annotations

from torch_ttnn.compiler.fusion import (
    activations,
    attention,
    batch_norm,
    columns,
    experts,
    heads,
    norms,
    products,
    projections,
    rotary,
    softmax,
)
from torch_ttnn.compiler.fusion.rule import Fusion

FAMILIES: tuple[tuple[Fusion, ...], ...] = (
    experts.FUSIONS,
    activations.FUSIONS,
    activations.LATER,
    norms.SHIFTED,
    norms.WEIGHTED,
    norms.PLAIN,
    rotary.FUSIONS,
    rotary.PARTIAL,
    batch_norm.FUSIONS + products.BIASES,
    attention.FUSIONS,
    columns.FUSIONS,
    products.FACTORS,
    projections.FUSIONS,
    heads.FUSIONS,
    softmax.FUSIONS,
    products.ACTIVATIONS,
)
