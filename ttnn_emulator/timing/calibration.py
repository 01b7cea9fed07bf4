"""The expected errors of predictions: by family, those that remain on times measured on silicon."""

from __future__ import annotations

from ttnn_emulator.enums import Arch

GENERIC_FAMILY = "generic"

# Architectures with times measured on silicon; the constants of others are derived from these.
MEASURED = frozenset({Arch.WORMHOLE_B0, Arch.BLACKHOLE})

# The 90th percentile of |predicted ÷ measured − 1| over all rows of a family, as printed by
# `python -m ttnn_emulator.timing evaluate`. Families with fewer than five rows have at least SCARCE.
SCARCE = 0.3
ERRORS: dict[str, float] = {
    "accumulation": 0.20,
    "binary": 0.90,
    "collective": 0.30,
    "concat": 0.30,
    "concat heads": 0.30,
    "convolution": 0.15,
    "copy": 0.30,
    "create heads": 0.30,
    "decode attention": 0.30,
    "embedding": 0.30,
    "grid_sample": 0.05,
    "group_norm": 0.15,
    "halo": 0.50,
    "integral_image": 0.30,
    "interleaved_to_sharded": 0.10,
    "key-value cache": 0.30,
    "layer_norm": 0.30,
    "matmul": 0.40,
    "minimal matmul": 0.30,
    "move": 0.15,
    "padded_slice": 0.10,
    "permute": 0.25,
    "pool": 0.30,
    "reduction": 0.30,
    "reshape": 0.20,
    "reshard": 0.30,
    "rotary embedding": 0.45,
    "sharded_to_interleaved": 0.15,
    "slice": 0.15,
    "slice_write": 0.10,
    "softmax": 0.30,
    "tilize": 0.10,
    "tilize_with_padding": 0.15,
    "transpose": 0.15,
    "typecast": 0.15,
    "unary": 0.10,
    "untilize": 0.05,
    "untilize_with_unpadding": 0.05,
    "upsample": 0.30,
}
# A family whose programs are modelled, but without measured times.
UNMEASURED = 0.6
# Programs that are not modelled, and priced by their bytes, tiles and cores alone: the same percentile of the
# errors when the programs of all other families are priced this way.
GENERIC = 4.2


def error_of(family: str) -> float:
    """The stated relative error of a family's predictions."""
    found = ERRORS.get(family)
    if found is not None:
        return found
    return GENERIC if family == GENERIC_FAMILY else UNMEASURED


def is_calibrated(family: str) -> bool:
    """Whether predictions of the family were compared with times measured on silicon."""
    return family in ERRORS
