"""The allocator of one chip's banked memories.

All banks of a memory are allocated in lockstep, as on the card: a buffer occupies the same address range in every bank,
sized by its pages per bank (or its largest shard). First fit; DRAM is allocated bottom-up, L1 top-down, so that the low
addresses of L1 remain for circular buffers.
"""

from __future__ import annotations

import bisect
import threading
from dataclasses import dataclass

from ttnn_emulator.enums import BufferType
from ttnn_emulator.errors import InvalidArgument, OutOfMemory
from ttnn_emulator.tensors.shapes import round_up


@dataclass(frozen=True)
class MemoryView:
    """The result of `ttnn.get_memory_view` for one memory, plus its peak use."""

    num_banks: int
    total_bytes_per_bank: int
    total_bytes_allocated_per_bank: int
    total_bytes_free_per_bank: int
    largest_contiguous_bytes_free_per_bank: int
    peak_bytes_allocated_per_bank: int
    block_table: list[dict[str, str]]


# tt-metal v0.77.0: tt_metal/impl/allocator/bank_manager.cpp, BankManager::allocate_buffer
# tt-metal v0.77.0: tt_metal/impl/allocator/algorithms/free_list_opt.cpp, FreeListOpt::allocate
class BankedMemory:
    """One memory (DRAM, L1, …): equal banks, one free list for all of them."""

    def __init__(
        self, buffer_type: BufferType, *, banks: int, bank_bytes: int, base: int, alignment: int, bottom_up: bool
    ) -> None:
        self.buffer_type = buffer_type
        self.banks = banks
        self.bank_bytes = bank_bytes
        self.base = base
        self.alignment = alignment
        self.bottom_up = bottom_up
        self.peak = 0
        self._free: list[tuple[int, int]] = [(0, bank_bytes)] if bank_bytes else []  # (start, end), sorted, disjoint
        self._used: dict[int, int] = {}
        self._allocated = 0
        self._kept = 0
        self._lock = threading.Lock()

    def allocate(self, total_bytes: int, bytes_per_bank: int, banks_used: int) -> int:
        """Allocate, and return the address, which is the same in every bank; raises OutOfMemory."""
        if bytes_per_bank == 0:
            return 0
        size = round_up(bytes_per_bank, self.alignment)
        with self._lock:
            index = self._find(size)
            if index is None:
                raise self._out_of_memory(total_bytes, size, banks_used)
            start, end = self._free[index]
            if self.bottom_up:
                offset, rest = start, (start + size, end)
            else:
                offset, rest = end - size, (start, end - size)
            if rest[0] == rest[1]:
                del self._free[index]
            else:
                self._free[index] = rest
            self._used[offset] = size
            self._allocated += size
            self.peak = max(self.peak, self._allocated)
        return self.base + offset

    def reserve_lowest(self, size: int) -> None:
        """Reserve the lowest bytes of every bank."""
        with self._lock:
            start, end = self._free[0] if self._free else (0, 0)
            if start != 0 or end < size:
                raise InvalidArgument(f"the lowest {size} B of {self.buffer_type.name} are in use")
            self._free[:1] = [(size, end)] if end > size else []
            self._kept = size

    def release_lowest(self) -> None:
        """Release the bytes that `reserve_lowest` reserved."""
        with self._lock:
            if self._free and self._free[0][0] == self._kept:
                self._free[0] = (0, self._free[0][1])
            elif self._kept:
                self._free.insert(0, (0, self._kept))
            self._kept = 0

    def _find(self, size: int) -> int | None:
        order = range(len(self._free)) if self.bottom_up else range(len(self._free) - 1, -1, -1)
        for index in order:
            start, end = self._free[index]
            if end - start >= size:
                return index
        return None

    def free(self, address: int) -> None:
        if address == 0:
            return
        with self._lock:
            offset = address - self.base
            size = self._used.pop(offset)
            self._allocated -= size
            start, end = offset, offset + size
            index = bisect.bisect_left(self._free, (start, end))
            if index < len(self._free) and self._free[index][0] == end:
                end = self._free.pop(index)[1]
            if index and self._free[index - 1][1] == start:
                start = self._free.pop(index - 1)[0]
                index -= 1
            self._free.insert(index, (start, end))

    @property
    def allocated(self) -> int:
        return self._allocated

    @property
    def largest_free(self) -> int:
        return max((end - start for start, end in self._free), default=0)

    @property
    def lowest_used_address(self) -> int | None:
        """The lowest allocated address; circular buffers must end below it."""
        return self.base + min(self._used) if self._used else None

    def _out_of_memory(self, total: int, size: int, banks: int) -> OutOfMemory:
        free = self.bank_bytes - self._allocated
        name = self.buffer_type.name
        return OutOfMemory(
            # tt-metal v0.77.0: tt_metal/impl/allocator/bank_manager.cpp, BankManager::allocate_buffer
            f"Out of Memory: Not enough space to allocate {total} B {name} buffer across {banks} banks, "
            f"where each bank needs to store {size} B, but bank size is {self.bank_bytes} B "
            f"(allocated: {self._allocated} B, free: {free} B, largest free block: {self.largest_free} B).",
            hint=_advice(name, size, self.bank_bytes, free),
        )

    def view(self) -> MemoryView:
        with self._lock:
            blocks = [(start, end - start, "no") for start, end in self._free]
            blocks += [(start, size, "yes") for start, size in self._used.items()]
            table = [
                {"address": str(start), "size": str(size), "allocated": used, "blockID": str(number)}
                for number, (start, size, used) in enumerate(sorted(blocks))
            ]
            return MemoryView(
                num_banks=self.banks,
                total_bytes_per_bank=self.bank_bytes,
                total_bytes_allocated_per_bank=self._allocated,
                total_bytes_free_per_bank=self.bank_bytes - self._allocated,
                largest_contiguous_bytes_free_per_bank=self.largest_free,
                peak_bytes_allocated_per_bank=self.peak,
                block_table=table,
            )


def _advice(name: str, size: int, bank: int, free: int) -> str:
    if size > bank:
        other = (
            "keep it in DRAM or shard it over more cores"
            if name.startswith("L1")
            else "use more chips or a smaller dtype"
        )
        return f"The buffer is larger than a whole bank: {other}."
    if size > free:
        return "Deallocate tensors that are no longer needed before this call."
    return "There is room, but in pieces: ttnn.reallocate moves tensors together."
