"""Which results of calls fit into L1, beside the circular buffers of the programs that run while they exist."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from torch_ttnn.compiler.ir.arguments import leaves
from torch_ttnn.perf.calls import PlannedCall, Ref
from ttnn_emulator import BufferType, MeshDevice
from ttnn_emulator.tensors.memory_config import L1_MEMORY_CONFIG
from ttnn_emulator.tensors.spec import Spec

SHARE = 0.9  # of L1; programs that read from L1 may have other circular buffers than the ones that were asked


def fits_in_l1(planned: Sequence[PlannedCall], device: MeshDevice) -> set[Hashable]:
    """References to results in DRAM that can be in L1 instead, chosen in the order of the calls."""
    room = int(SHARE * device.memory(BufferType.L1).bank_bytes)
    taken = [each.l1_bytes for each in planned]
    last = _last_uses(planned)
    chosen: set[Hashable] = set()
    for number, each in enumerate(planned):
        for key, spec in each.outputs.items():
            until = last.get(key)
            if until is None or not spec.on_device or not spec.memory_config.is_dram:
                continue
            size = _bytes_per_core(spec, device)
            if size + max(taken[number : until + 1]) <= room:
                chosen.add(key)
                for at in range(number, until + 1):
                    taken[at] += size
    return chosen


def _last_uses(planned: Sequence[PlannedCall]) -> dict[Hashable, int]:
    """The last call that reads a result. Views of it count as it."""
    last: dict[Hashable, int] = {}
    views: dict[Hashable, Hashable] = {}
    for number, each in enumerate(planned):
        read = [leaf.key for leaf in leaves((each.call.args, dict(each.call.kwargs))) if isinstance(leaf, Ref)]
        for key in read:
            last[_viewed(key, views)] = number
        if not each.records and read:
            views.update(dict.fromkeys(each.outputs, _viewed(read[0], views)))
    return last


def _viewed(key: Hashable, views: dict[Hashable, Hashable]) -> Hashable:
    return views.get(key, key)


def _bytes_per_core(spec: Spec, device: MeshDevice) -> int:
    memory = device.memory(BufferType.L1)
    return spec.with_(memory_config=L1_MEMORY_CONFIG).bytes_per_bank(memory.banks, device.board.l1_alignment)
