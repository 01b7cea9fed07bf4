"""Gates of mixtures of experts in prefill: by the best scores, by groups of experts, or by a table of tokens."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats.carriers import CARRIER
from ttnn_emulator.numerics.programs.experts import prefill_gate as numeric
from ttnn_emulator.ops.attention.heads.common import faulty
from ttnn_emulator.ops.prefill.mesh_positions import PREFILL, require_unsigned, row_bytes
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

FUNCTIONS = ("sigmoid", "sqrtsoftplus")
SCORE_DTYPES = (DataType.FLOAT32, DataType.BFLOAT16)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/moe_grouped_topk/device/moe_grouped_topk_device_operation.cpp,  # noqa: E501
# n_activated_experts
GROUPED_EXPERTS, GROUPED_KEPT = 256, 8
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/moe_hash_gate/device/moe_hash_gate_device_operation.cpp,  # noqa: E501
# n_activated_experts
MOST_KEPT, MOST_BY_TABLE = 64, 32
# Buffers of the program factories without those of scores, in float32 tiles.
GROUPED_BUFFERS, HASHED_BUFFERS = 31, 11


def _require_scores(spec: Spec, name: str, dtypes: tuple[DataType, ...]) -> None:
    require_on_device(spec, name)
    require(spec.dtype in dtypes, f"{name} must be {' or '.join(map(str, dtypes))}, not {spec.dtype}")
    require_tile(spec, name)


def _require_padding(spec: Spec | None) -> None:
    if spec is None:
        return
    require_on_device(spec, "padding_config")
    require(spec.dtype is DataType.UINT32, f"padding_config is {spec.dtype}, not uint32")
    require(spec.layout is Layout.ROW_MAJOR, "padding_config must be in ROW_MAJOR layout")
    require(spec.shape[-1] >= 2, f"padding_config is {spec.shape[-1]} wide, it must hold two numbers")


def _require_function(name: str) -> None:
    require(name in FUNCTIONS, f"score_func {name!r} is not one of {', '.join(FUNCTIONS)}")


def _marked(chosen: torch.Tensor, padding: torch.Tensor | None, shape: tuple[int, ...], experts: int) -> torch.Tensor:
    """Rows of tokens that are padding name an expert that does not exist.

    A row's number is that of its tiles, counted from 0 in every matrix.
    """
    if padding is None:
        return chosen
    real, side = (int(value) for value in padding.reshape(-1)[:2])
    tokens = chosen.shape[0]
    if real >= tokens:
        return chosen
    length = shape[-2] if len(shape) > 1 else 1
    number = torch.arange(tokens)
    rows = number // length * div_up(length, TILE_SIZE) * TILE_SIZE + number % length
    padded = rows >= real if side == 0 else rows < tokens - real
    return torch.where(padded.unsqueeze(-1), experts, chosen)


@operation(f"{PREFILL}.moe_grouped_topk")
def moe_grouped_topk(
    scores: Spec,
    bias: Spec,
    *,
    n_groups: int = 8,
    summed_experts_per_group: int = 2,
    topk_groups: int = 4,
    n_activated_experts: int = 8,
    route_scale: float = 1.0,
    epsilon: float = 1e-20,
    stable_sort: bool = False,
    score_func: str = "sigmoid",
    memory_config: MemoryConfig | None = None,
    padding_config: Spec | None = None,
    biased_scores: Spec | None = None,
    weights_layout: Layout = Layout.TILE,
) -> Plan:
    """Weights and indices of the experts with the best biased scores, of all or of the four best groups."""
    require_unsigned(n_groups=n_groups, n_activated_experts=n_activated_experts, topk_groups=topk_groups)
    _require_function(score_func)
    _require_scores(scores, "scores", SCORE_DTYPES)
    _require_scores(bias, "bias", SCORE_DTYPES)
    require(scores.shape == bias.shape, f"scores are {list(scores.shape)}, the bias {list(bias.shape)}")
    _require_padding(padding_config)
    if biased_scores is not None:
        _require_scores(biased_scores, "biased_scores", (DataType.FLOAT32,))
        same = biased_scores.shape == scores.shape and biased_scores.tile == scores.tile
        require(same, f"biased_scores are {list(biased_scores.shape)}, the scores {list(scores.shape)}")
    experts, kept = scores.shape[-1], n_activated_experts
    if n_groups == 1:
        _require_kept(experts, kept, MOST_KEPT)
    else:
        summed, best = summed_experts_per_group, topk_groups
        require(summed == numeric.SUMMED, f"summed_experts_per_group must be {numeric.SUMMED}, not {summed}")
        require(n_groups == numeric.GROUPS, f"n_groups must be 1 or {numeric.GROUPS}, not {n_groups}")
        require(best == numeric.BEST_GROUPS, f"topk_groups must be {numeric.BEST_GROUPS}, not {best}")
        require(experts == GROUPED_EXPERTS, f"in groups there must be {GROUPED_EXPERTS} experts, not {experts}")
        require(kept == GROUPED_KEPT, f"in groups {GROUPED_KEPT} experts are chosen, not {kept}")
    in_rows = weights_layout is Layout.ROW_MAJOR
    require(not in_rows or kept <= TILE_SIZE, f"rows of {kept} weights are longer than a tile")
    config = memory_of(memory_config, scores)
    require(not in_rows or not config.is_sharded(), "weights in ROW_MAJOR layout must be interleaved")
    shape = (*scores.shape[:-1], kept)
    outputs = [
        Spec.of(shape, DataType.BFLOAT16, weights_layout, config),
        Spec.of(shape, DataType.UINT16, Layout.TILE, config),
    ]
    choose = numeric.best if n_groups == 1 else numeric.best_of_groups
    tokens = math.prod(scores.shape[:-1])

    def compute(logits: torch.Tensor, biases: torch.Tensor, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
        own = numeric.activated(logits.reshape(tokens, experts), score_func)
        judged = numeric.biased(own, biases.reshape(tokens, experts))
        chosen = choose(judged, stable=stable_sort)[:, :kept]
        made = numeric.weights(own, chosen, route_scale, epsilon).reshape(shape)
        marked = _marked(chosen, rest[0] if rest else None, scores.shape, experts)
        results = made, marked.to(CARRIER[DataType.UINT16]).reshape(shape)
        return (*results, judged.reshape(scores.shape)) if biased_scores is not None else results

    run: Callable[..., tuple[torch.Tensor, ...]] = compute
    if kept > TILE_SIZE or experts < 2 * TILE_SIZE:
        run = faulty(f"{kept} of {experts} experts: the kernel chooses up to {TILE_SIZE} of at least {2 * TILE_SIZE}")
    reads = ("scores", "bias", *(("padding_config",) if padding_config is not None else ()))
    tiles, wide = experts // TILE_SIZE, tile_bytes(scores.tile, DataType.FLOAT32)
    l1_bytes = (7 * tiles + GROUPED_BUFFERS) * wide + 2 * tiles * (scores.page_bytes + bias.page_bytes)
    if biased_scores is None:
        return Plan(outputs, run, reads=reads, l1_bytes=l1_bytes)
    return Plan(
        [*outputs, biased_scores],
        run,
        reads=reads,
        into=(None, None, "biased_scores"),
        l1_bytes=l1_bytes + tiles * wide,
        wrap=lambda tensors: list(tensors[:2]),
    )


def _require_kept(experts: int, kept: int, most: int) -> None:
    require(experts % TILE_SIZE == 0, f"{experts} experts are not a multiple of {TILE_SIZE}")
    require(0 < kept <= most, f"n_activated_experts must be between 1 and {most}, not {kept}")
    require(kept <= experts, f"{kept} experts are more than the {experts} there are")


@operation(f"{PREFILL}.moe_hash_gate")
def moe_hash_gate(
    scores: Spec,
    input_ids: Spec,
    tid2eid: Spec,
    *,
    n_activated_experts: int,
    route_scale: float = 1.0,
    epsilon: float = 1e-20,
    score_func: str = "sqrtsoftplus",
    memory_config: MemoryConfig | None = None,
    padding_config: Spec | None = None,
) -> Plan:
    """Weights and indices of the experts that a table names for every token."""
    require_unsigned(n_activated_experts=n_activated_experts)
    _require_function(score_func)
    _require_scores(scores, "scores", (DataType.FLOAT32,))
    for spec, name, dtype in ((input_ids, "input_ids", DataType.UINT32), (tid2eid, "tid2eid", DataType.UINT16)):
        require_on_device(spec, name)
        require(spec.dtype is dtype, f"{name} is {spec.dtype}, not {dtype}")
        require(spec.layout is Layout.ROW_MAJOR, f"{name} must be in ROW_MAJOR layout")
    _require_padding(padding_config)
    experts, kept = scores.shape[-1], n_activated_experts
    _require_kept(experts, kept, MOST_BY_TABLE)
    require(tid2eid.shape[-1] >= kept, f"tid2eid names {tid2eid.shape[-1]} experts a token, not {kept}")
    tokens = math.prod(scores.shape[:-1])
    require(input_ids.volume >= tokens, f"input_ids holds {input_ids.volume} numbers for {tokens} tokens")
    shape = (*scores.shape[:-1], kept)
    config = memory_of(memory_config, scores)
    outputs = [Spec.of(shape, dtype, Layout.TILE, config) for dtype in (DataType.BFLOAT16, DataType.UINT16)]

    def compute(logits: torch.Tensor, ids: torch.Tensor, table: torch.Tensor, *rest: torch.Tensor) -> tuple:
        own = numeric.activated(logits.reshape(tokens, experts), score_func)
        lines = table.reshape(-1, table.shape[-1])
        named = _ids_of_rows(ids, scores)
        if int(named.max()) >= lines.shape[0]:
            raise ChipFault(f"token {int(named.max())} is not in a table of {lines.shape[0]}")
        chosen = lines[named, :kept].long()
        if int(chosen.max()) >= experts:
            raise ChipFault(f"expert {int(chosen.max())} is not one of {experts}")
        made = numeric.weights(own, chosen, route_scale, epsilon).reshape(shape)
        marked = _marked(chosen, rest[0] if rest else None, scores.shape, experts)
        return made, marked.to(CARRIER[DataType.UINT16]).reshape(shape)

    run: Callable[..., tuple] = compute
    if not _has_ids_by_tile(input_ids, scores):
        run = faulty(f"input_ids of {list(input_ids.shape)} are read as one row of {TILE_SIZE} for every row of tiles")
    reads = ("scores", "input_ids", "tid2eid", *(("padding_config",) if padding_config is not None else ()))
    l1_bytes = (3 * experts // TILE_SIZE + HASHED_BUFFERS) * scores.page_bytes + 2 * scores.page_bytes
    l1_bytes += 2 * input_ids.page_bytes + TILE_SIZE * row_bytes(tid2eid) + scores.page_bytes // 2
    return Plan(outputs, run, reads=reads, l1_bytes=l1_bytes)


def _rows_of_tiles(scores: Spec) -> tuple[int, int]:
    """Matrices of scores, and rows of tiles of each."""
    length = scores.shape[-2] if scores.rank > 1 else 1
    return math.prod(scores.shape[:-2]), div_up(length, TILE_SIZE)


def _has_ids_by_tile(ids: Spec, scores: Spec) -> bool:
    """Whether every row of tiles finds its tokens at the start of a row of `ids`."""
    matrices, tall = _rows_of_tiles(scores)
    length = scores.shape[-2] if scores.rank > 1 else 1
    return math.prod(ids.shape[:-1]) >= matrices * tall and ids.shape[-1] >= min(length, TILE_SIZE)


def _ids_of_rows(ids: torch.Tensor, scores: Spec) -> torch.Tensor:
    """The token of every row of scores."""
    matrices, tall = _rows_of_tiles(scores)
    length = scores.shape[-2] if scores.rank > 1 else 1
    lines = ids.reshape(-1, ids.shape[-1])[: matrices * tall, :TILE_SIZE]
    padded = torch.nn.functional.pad(lines, (0, TILE_SIZE - lines.shape[-1]))
    return padded.reshape(matrices, tall * TILE_SIZE)[:, :length].reshape(-1).long()
