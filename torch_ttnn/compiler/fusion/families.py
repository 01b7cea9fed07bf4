"""The families of fusions, in the order in which they run, with the families that must run before each."""

from __future__ import annotations

from dataclasses import dataclass

from torch_ttnn.compiler.fusion import (
    activations,
    attention,
    batch_norm,
    columns,
    experts,
    heads,
    norms,
    optimizers,
    products,
    projections,
    rotary,
    softmax,
)
from torch_ttnn.compiler.fusion.rule import Fusion


@dataclass(frozen=True)
class Family:
    """Fusions that run in one pass over the graph; `after` names the families whose results it needs."""

    name: str
    fusions: tuple[Fusion, ...]
    after: tuple[str, ...] = ()


FAMILIES: tuple[Family, ...] = (
    Family("experts", experts.FUSIONS),
    # The activation between the products of the experts is written out in their pattern.
    Family("activations", activations.FUSIONS, after=("experts",)),
    # A hardsigmoid is part of a hardswish.
    Family("hardsigmoid", activations.LATER, after=("activations",)),
    # A norm is part of a weighted norm, which is part of a shifted one.
    Family("shifted norms", norms.SHIFTED),
    Family("weighted norms", norms.WEIGHTED, after=("shifted norms",)),
    Family("norms", norms.PLAIN, after=("weighted norms",)),
    Family("optimizers", optimizers.FUSIONS),
    Family("rotary embedding", rotary.FUSIONS),
    # Its pattern contains a rotary embedding of the front of a head.
    Family("partial rotary embedding", rotary.PARTIAL, after=("rotary embedding",)),
    Family("biases", batch_norm.FUSIONS + products.BIASES),
    Family("attention", attention.FUSIONS, after=("biases", "partial rotary embedding")),
    # Its pattern is an attention, whose operands it inspects.
    Family("columns of heads", columns.FUSIONS, after=("attention",)),
    # A factor of the queries is first offered to the attention, as its scale.
    Family("factors", products.FACTORS, after=("attention", "columns of heads")),
    # Merges products after factors are folded into their weights.
    Family("projections", projections.FUSIONS, after=("attention", "columns of heads", "factors")),
    Family("heads", heads.FUSIONS, after=("projections",)),
    # A softmax with scale and mask is part of an attention.
    Family("softmax", softmax.FUSIONS, after=("attention",)),
    # Other families match plain products, so activations are fused into them last.
    Family("activations of products", products.ACTIVATIONS, after=("activations", "biases", "factors", "projections")),
)
