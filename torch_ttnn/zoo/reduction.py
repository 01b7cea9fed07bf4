"""Reduces the depth of transformers' models, so that many can be traced; everything else stays as published.

The rule: every depth in a config and in the configs within it (`num_hidden_layers`, `encoder_layers` …) becomes 2, and
every stage of a network of stages (`depths`) at most 2. Where layers are of several kinds (`layer_types`), one of each
kind is kept, so there may be more than 2. Widths, heads, experts and vocabularies stay, and with them the shapes that
operations see. Lists with one item per layer are cut to the kept layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LAYERS = 2  # of every stack by default

DEPTHS = frozenset(
    """
    num_hidden_layers num_layers n_layer n_layers layers depth encoder_layers decoder_layers num_encoder_layers
    num_decoder_layers encoder_num_hidden_layers decoder_num_hidden_layers decoder_num_layers encoder_num_layers
    speech_encoder_layers t2u_encoder_layers t2u_decoder_layers text_encoder_num_layers l_layers x_layers r_layers
    num_self_attends_per_block num_spatial_layers num_temporal_layers num_auxiliary_layers num_global_layers
    pred_num_hidden_layers conf_num_hidden_layers num_layers_per_stack num_attention_layers resampler_depth
    memory_attention_num_layers num_timestamp_prediction_layers posterior_encoder_num_wavenet_layers
    """.split()
)
STAGES = frozenset(("depths", "blocks_per_stage", "block_sizes", "num_block_repeats"))
KINDS = ("layer_types", "layers_block_type", "mlp_layer_types", "attention_layers")
# Indices of special layers; those that remain are kept.
NUMBERS = frozenset(
    """
    fullatt_block_indexes global_attention_blocks global_attn_indexes window_block_indices window_block_indexes
    mlp_only_layers moe_layers extract_layers kv_source_layers rope_scaling_layers cross_attention_layers
    """.split()
)
BY_LAYER = frozenset(("per_layer_config",))  # tables of what differs in single layers
# Settings that would remove all special layers, or need more layers than there are.
CAPS = {"first_k_dense_replace": 1, "num_dense_layers": 1, "num_kv_shared_layers": 0, "moe_layer_start_index": 1}
DERIVED = frozenset(("stage_names", "out_features", "out_indices"))  # follow from the depth, in backbones of one stack


def reduced(config: Any, layers: int = LAYERS) -> Any:
    """The same config with fewer layers."""
    return type(config).from_dict({**plain(config), **changes(config, layers)})


def changes(config: Any, layers: int) -> dict[str, Any]:
    """The settings of a config, and of the configs within it, that differ in the reduced one."""
    content: dict[str, Any] = config.to_dict()
    kept = kept_layers(content, layers)
    changed: dict[str, Any] = {}
    stages = {len(value) for name, value in content.items() if name in STAGES and isinstance(value, list | tuple)}
    for name, value in content.items():
        if name in DEPTHS and is_count(value) and value not in stages:  # Swin's num_layers is its number of stages
            changed[name] = min(value, len(kept))
        elif name in CAPS and is_count(value):
            changed[name] = min(value, CAPS[name])
        elif name in STAGES and isinstance(value, list | tuple) and all(map(is_count, value)):
            changed[name] = [min(each, layers) for each in value]
    changed |= {} if stages else shortened(content, kept)
    for name in getattr(config, "sub_configs", {}):
        part = getattr(config, name, None)
        if hasattr(part, "to_diff_dict"):
            changed[name] = {**plain(part), **changes(part, layers)}
    return changed


def kept_layers(content: Mapping[str, Any], layers: int) -> list[int]:
    """The layers to keep: the first of each kind, and the first ones up to the requested number."""
    kinds = [content[name] for name in KINDS if isinstance(content.get(name), list | tuple) and content[name]]
    count = max(map(len, kinds), default=0)
    if not count:
        return list(range(layers))
    described = [tuple(str(each[layer]) for each in kinds if layer < len(each)) for layer in range(count)]
    first = {described.index(kind) for kind in set(described)}
    others = [layer for layer in range(count) if layer not in first]
    return sorted(first | set(others[: max(0, layers - len(first))]))


def shortened(content: Mapping[str, Any], kept: Sequence[int]) -> dict[str, Any]:
    """Lists with one item per layer, cut to the kept layers."""
    depth = next((content[name] for name in ("num_hidden_layers", "n_layer", "num_layers") if name in content), None)
    depth = depth if is_count(depth) else next((len(content[name]) for name in KINDS if content.get(name)), None)
    if depth is None or depth <= len(kept):
        return {}
    lists = {name: value for name, value in content.items() if isinstance(value, list | tuple) and name not in DERIVED}
    cut = {name: [value[layer] for layer in kept] for name, value in lists.items() if len(value) == depth}
    numbered = {
        name: [number for number in value if number in range(len(kept))] or [len(kept) - 1]
        for name, value in lists.items()
        if name in NUMBERS and value and all(map(is_count, value))
    }
    by_layer = {
        name: {number: each for number, each in value.items() if int(number) < len(kept)}
        for name, value in content.items()
        if isinstance(value, dict) and value and all(str(number).isdigit() for number in value) and name in BY_LAYER
    }
    return {**cut, **numbered, **by_layer}


def plain(config: Any) -> dict[str, Any]:
    """The settings of a config that differ from the defaults, without those that depend on the depth."""
    a_stage_each = len(getattr(config, "stage_names", None) or ()) == getattr(config, "num_hidden_layers", 0) + 1
    dropped = DERIVED if a_stage_each else ()
    return {name: value for name, value in config.to_diff_dict().items() if name not in dropped}


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
