"""Gates of mixtures of experts over many tokens: deepseek_grouped_gate and topk_router_gpt."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even
from ttnn_emulator.numerics.programs.products.matmul import Kernel
from ttnn_emulator.numerics.programs.reduction.ordering import keys
from ttnn_emulator.numerics.programs.reduction.tile_selection import best_tile, order_of_eight
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import L1_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import Spec

BF16, UINT16 = DataType.BFLOAT16, DataType.UINT16
TILE_BYTES = 2 * TILE_SIZE * TILE_SIZE

# -- groups of experts ------------------------------------------------------------------------------------------------

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/reduction/deepseek_grouped_gate/device/deepseek_grouped_gate_device_operation.cpp,  # noqa: E501
# validation
# The only sizes that the library accepts.
EXPERTS = 256
GROUPED = {"n_groups": 8, "summed_experts_per_group": 2, "topk_groups": 4, "n_activated_experts": 8}
GROUP = EXPERTS // GROUPED["n_groups"]
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/reduction/deepseek_grouped_gate/device/deepseek_grouped_gate_program_factory.cpp,  # noqa: E501
# circular buffers and ComputeConfigDescriptor
GATE_TILES = 90  # tiles of all circular buffers
# The factory keeps the default fidelity and approximation of ComputeConfigDescriptor.
GATE_MATH = MathConfig(MathFidelity.HiFi4, fp32_acc=False, approx=False)


@operation("ttnn.experimental.deepseek_grouped_gate")
def deepseek_grouped_gate(
    scores: Spec,
    bias: Spec,
    *,
    n_groups: int = 8,
    summed_experts_per_group: int = 2,
    topk_groups: int = 4,
    n_activated_experts: int = 8,
    route_scale: float = 1.0,
    epsilon: float = 1e-20,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """The 8 best experts, by sigmoid(scores) + bias, of the 4 best of 8 groups of 32, and their normalised sigmoids.

    Groups are compared by the sum of their two best experts. Indices are ordered from the best expert on.
    """
    for name, spec in (("scores", scores), ("bias", bias)):
        require_on_device(spec, name)
        require(spec.dtype is BF16, f"{name} must be BFLOAT16, not {spec.dtype}")
        require_tile(spec, name)
    require(
        scores.shape == bias.shape, f"scores {list(scores.shape)} and bias {list(bias.shape)} must have the same shape"
    )
    given = (n_groups, summed_experts_per_group, topk_groups, n_activated_experts)
    for (name, only), value in zip(GROUPED.items(), given):
        require(value == only, f"{name} must be {only}, not {value}")
    require(scores.rank > 0 and scores.shape[-1] == EXPERTS, f"there must be {EXPERTS} experts: {list(scores.shape)}")
    shape, memory = (*scores.shape[:-1], n_activated_experts), memory_of(memory_config, scores)
    out = [Spec.of(shape, dtype, Layout.TILE, memory) for dtype in (BF16, UINT16)]
    shift, scale = (round_bf16_nearest_even(torch.tensor(each)) for each in (epsilon, route_scale))

    def compute(logits: torch.Tensor, added: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        core = Core.of(GATE_MATH, logits.numel())
        logits, added = logits.reshape(-1, EXPERTS), added.reshape(-1, EXPERTS)
        weights = core.through(core.apply("sigmoid", logits), BF16)
        biased = core.through(core.add(weights, added), BF16)
        groups = biased.unflatten(-1, (n_groups, GROUP))
        places = torch.arange(EXPERTS).unflatten(-1, (n_groups, GROUP)).expand(groups.shape)
        first, second = _two_best(groups)
        order = order_of_eight(core.through(core.add(first, second), BF16))[:, :topk_groups]
        chosen = order.unsqueeze(-1).expand(-1, -1, GROUP)
        kept = torch.gather(groups, 1, chosen).flatten(1), torch.gather(places, 1, chosen).flatten(1)
        found = best_tile(*kept)[1][:, :n_activated_experts]
        shares = _normalized(core, torch.gather(weights, 1, found), shift, scale)
        return shares.reshape(shape), found.to(torch.int32).reshape(shape)

    return Plan(out, compute, l1_bytes=GATE_TILES * TILE_BYTES)


def _two_best(groups: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest and the second largest of the last dimension, in the vector unit's order."""
    places = keys(groups).topk(2, -1).indices
    best = torch.gather(groups, -1, places)
    return best[..., 0].contiguous(), best[..., 1].contiguous()


def _normalized(core: Core, weights: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    total = core.through(core.row_sums(weights), BF16)
    inverse = core.through(core.apply("recip", core.add(total, shift)), BF16)
    return core.packed(core.mul(core.through(core.mul(weights, inverse), BF16), scale), BF16)


# -- the router of GPT-OSS --------------------------------------------------------------------------------------------

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/topk_router_gpt/device/topk_router_gpt_device_operation.cpp,
# num_experts, k
ROUTED = 128  # experts
MOST_BEST = 32
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/topk_router_gpt/device/topk_router_gpt_program_factory.cpp,
# cores_per_group
PARTS = 3  # cores that share the inner dimension of one tile of experts
ROUTER_CORES = PARTS * ROUTED // TILE_SIZE
ROUTER_TILES = 23  # circular-buffer tiles on the collecting core, without input and weight
ROUTER_MATH = MathConfig(MathFidelity.HiFi2, fp32_acc=True, approx=False)
ROWS_OF_RESULT = 8  # values per write of a result row


@operation("ttnn.experimental.topk_router_gpt")
def topk_router_gpt(
    input_tensor: Spec, *, weight_tensor: Spec, bias_tensor: Spec, k: int = 4, num_experts: int = ROUTED
) -> Plan:
    """Indices of the k best of 128 logits, input @ weight + bias, and the softmax of those: two [rows, k] tensors."""
    require(1 <= k <= MOST_BEST, f"k must be 1 to {MOST_BEST}, not {k}")
    require(num_experts == ROUTED, f"num_experts must be {ROUTED}, not {num_experts}")
    given = (("input", input_tensor), ("weight", weight_tensor), ("bias", bias_tensor))
    for name, spec in given:
        require_on_device(spec, f"the {name}")
        require_tile(spec, f"the {name}")
        require(spec.dtype is BF16, f"the {name} must be BFLOAT16, not {spec.dtype}")
        require(spec.rank == 2, f"the {name} must have rank 2, not {spec.rank}")
    rows, inner = input_tensor.shape
    require(1 <= rows <= TILE_SIZE, f"the input must have 1 to {TILE_SIZE} rows, not {rows}")
    require(inner % TILE_SIZE == 0, f"{inner} columns of the input are not whole tiles")
    for (name, spec), wanted in zip(given[1:], ((inner, ROUTED), (rows, ROUTED))):
        require(spec.shape == wanted, f"the {name} must be {list(wanted)}, not {list(spec.shape)}")
    banks = current_board().dram_banks
    require(banks >= ROUTER_CORES, f"{ROUTER_CORES} cores next to DRAM banks are needed, there are {banks}")
    out = [Spec.of((rows, k), t, Layout.ROW_MAJOR, L1_MEMORY_CONFIG, alignment=(TILE_SIZE, 1)) for t in (UINT16, BF16)]
    tiles = inner // TILE_SIZE
    parts = [tiles // PARTS + (part < tiles % PARTS) for part in range(PARTS)]
    multiply = [Kernel(ROUTER_MATH, BF16, BF16, dtype).compute() for dtype in (BF16, BF16, DataType.FLOAT32)]

    def compute(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        core = Core.of(ROUTER_MATH, rows * ROUTED)
        sizes = [part * TILE_SIZE for part in parts]
        sums = [
            run(left.contiguous(), right.contiguous()) if left.numel() else torch.zeros(rows, ROUTED)
            for run, left, right in zip(multiply, x.split(sizes, 1), weight.split(sizes, 0))
        ]
        total = sums[-1]
        for part in (*sums[:-1], bias):
            # The sum goes from the destination register into a source register, which keeps 11 bits of it.
            total = core.add(core.source(total, DataType.FLOAT32), part)
        logits = core.packed(total, BF16)
        values, found = best_tile(logits, torch.arange(ROUTED).expand(rows, -1))
        return found[:, :k].to(torch.int32), _softmax(core, values, k)

    size = (2 * div_up(tiles, PARTS) + ROUTER_TILES) * TILE_BYTES + 4 * TILE_SIZE * round_up(k, ROWS_OF_RESULT)
    return Plan(tuple(out), compute, reads=("input_tensor", "weight_tensor", "bias_tensor"), l1_bytes=size)


def _softmax(core: Core, values: torch.Tensor, k: int) -> torch.Tensor:
    """Of the first k of 32; the others are -infinity."""
    hidden = torch.where(torch.arange(values.shape[-1]) < k, 0.0, -torch.inf)
    masked = core.through(core.add(values, hidden), BF16)
    largest = core.through(numeric.extreme(masked, -1, largest=True).unsqueeze(-1), BF16)
    powers = core.through(core.apply("exp", core.sub(masked, largest), approx=True), BF16)
    inverse = core.through(core.apply("recip", core.row_sums(powers)), BF16)
    return core.packed(core.mul(powers, inverse), BF16)[:, :k].contiguous()
