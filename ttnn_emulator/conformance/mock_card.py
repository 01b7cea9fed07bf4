"""Prepares a folder in which the released `ttnn` wheel finds a mock card.

The library reads the card from a cluster description, so a mock card needs only a description. The library still
compiles and links kernels; a shell script replaces the compiler and writes one small RISC-V program that does nothing
and is never run.
"""

from __future__ import annotations

import os
import pathlib
import struct
from typing import Any

from ttnn_emulator.conformance.server import CHIPS_VARIABLE

SIMULATOR_VARIABLE = "TT_METAL_SIMULATOR"  # of the library: a functional simulator, which computes values

# Per card: the chips, their links, and the harvested rows or columns of cores.
CLUSTERS: dict[str, dict[str, Any]] = {
    "n150": {"arch": "wormhole_b0", "chips": 1, "links": [], "harvested": 64, "eth": 0, "pcie": 0, "type": "n150"},
    "n300": {
        "arch": "wormhole_b0",
        "chips": 2,
        "links": [((0, 8), (1, 0)), ((0, 9), (1, 1))],
        "harvested": 65,
        "eth": 0,
        "pcie": 0,
        "type": "n300",
    },
    "p150": {"arch": "blackhole", "chips": 1, "links": [], "harvested": 3, "eth": 288, "pcie": 2, "type": "p150"},
}
# Variables of mock cards with several chips, which have no fast dispatch.
OF_SEVERAL_CHIPS = ("TT_METAL_SLOW_DISPATCH_MODE", CHIPS_VARIABLE)
CLUSTERS |= {"p150-12x10": CLUSTERS["p150"] | {"harvested": 1}, "p150-13x10": CLUSTERS["p150"] | {"harvested": 0}}
FIRST_BOARD_ID = 72059269368820857

COMPILER = r"""#!/bin/sh
# Replaces the kernel compiler on a mock card: writes empty objects and links them to a program that does nothing.
output= compiling= dependencies=
while [ $# -gt 0 ]; do
  case "$1" in
    --version) echo "riscv-tt-elf-g++ (tenstorrent/sfpi:0.0.0[0]) 15.1.0"; exit 0 ;;
    -o) output=$2; shift ;;
    -MF) dependencies=$2; shift ;;
    -c | c++-header) compiling=yes ;;
  esac
  shift
done
[ -n "$output" ] || exit 0
if [ -n "$compiling" ]; then
  : > "$output"
  [ -z "$dependencies" ] || echo "$output:" > "$dependencies"
else
  cat "${0%/*}/nothing.elf" > "$output"
fi
"""


def prepare(folder: str | os.PathLike, ttnn_package: str | os.PathLike, board: str = "n150") -> dict[str, str]:
    """Fill `folder` and return the environment variables under which `import ttnn` uses it."""
    root = pathlib.Path(folder).resolve()
    tools = root / "runtime" / "sfpi" / "compiler" / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    (root / "runtime" / "sfpi" / "include").mkdir(exist_ok=True)
    for name in ("tt_metal", "ttnn", "runtime/hw"):
        link = root / name
        if link.is_symlink():
            link.unlink()
        link.symlink_to(pathlib.Path(ttnn_package) / name)
    (tools / "nothing.elf").write_bytes(do_nothing_elf())
    compiler = tools / "riscv-tt-elf-g++"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    description = root / f"{board}.yaml"
    description.write_text(cluster_description(board))
    environment = {
        "TT_METAL_RUNTIME_ROOT": str(root),
        "TT_METAL_MOCK_CLUSTER_DESC_PATH": str(description),
        "TT_METAL_CACHE": f"{root}/cache/",  # the library appends to this: the slash is needed
        "TT_METAL_DISABLE_BACKTRACE": "1",
        "TT_LOGGER_LEVEL": "fatal",
        "TT_METAL_LOGGER_LEVEL": "fatal",
        "LOGURU_LEVEL": "ERROR",
    }
    if CLUSTERS[board]["chips"] > 1:
        environment.update(zip(OF_SEVERAL_CHIPS, ("1", str(CLUSTERS[board]["chips"]))))
    return environment


def cluster_description(board: str) -> str:
    """The library's own YAML form of a cluster of one card."""
    cluster = CLUSTERS[board]
    chips = range(cluster["chips"])
    harvesting = (
        f"{{noc_translation: true, harvest_mask: {cluster['harvested']}, dram_harvesting_mask: 0, "
        f"eth_harvesting_mask: {cluster['eth']}, pcie_harvesting_mask: {cluster['pcie']}}}"
    )
    links = ", ".join(f"[{{chip: {a}, chan: {x}}}, {{chip: {b}, chan: {y}}}]" for (a, x), (b, y) in cluster["links"])
    return "\n".join(
        [
            "arch: {" + ", ".join(f"{chip}: {cluster['arch']}" for chip in chips) + "}",
            "chips: {" + ", ".join(f"{chip}: [{chip}, 0, 0, 0]" for chip in chips) + "}",
            f"ethernet_connections: [{links}]",
            "chips_with_mmio: [{0: 0}]",
            "harvesting: {" + ", ".join(f"{chip}: {harvesting}" for chip in chips) + "}",
            f"boards: [[{{board_id: {FIRST_BOARD_ID}}}, {{board_type: {cluster['type']}}}, {{chips: {list(chips)}}}]]",
            "",
        ]
    )


def do_nothing_elf(address: int = 0x8000) -> bytes:
    """A RISC-V program of two instructions, `return 0`, with the sections that the library's loader requires."""
    return_zero = struct.pack("<4I", 0x00000513, 0x00008067, 0x00000013, 0x00000013)  # li a0, 0; ret; nop; nop
    section_names = b"\0.text\0.rela.text\0.symtab\0.strtab\0.shstrtab\0"
    symbols = bytes(16) + struct.pack("<IIIBBH", 1, address, len(return_zero), 0x12, 0, 1)
    relocations = struct.pack("<IIi", address, 0, 0)
    header_size, program_header_size, section_header_size = 52, 32, 40

    # name, type, flags, address, link, info, alignment, entry size, contents
    sections = [
        (b".text", 1, 6, address, 0, 0, 4, 0, return_zero),
        (b".rela.text", 4, 0x40, 0, 3, 1, 4, 12, relocations),
        (b".symtab", 2, 0, 0, 4, 1, 4, 16, symbols),
        (b".strtab", 3, 0, 0, 0, 0, 1, 0, b"\0_start\0"),
        (b".shstrtab", 3, 0, 0, 0, 0, 1, 0, section_names),
    ]
    body, headers, offset = b"", [bytes(section_header_size)], header_size + program_header_size
    for name, kind, flags, where, link, info, alignment, entry, contents in sections:
        padding = -offset % 16
        body, offset = body + bytes(padding), offset + padding
        name_at = section_names.index(b"\0" + name + b"\0") + 1
        headers.append(
            struct.pack("<10I", name_at, kind, flags, where, offset, len(contents), link, info, alignment, entry)
        )
        body, offset = body + contents, offset + len(contents)
    padding = -offset % 16
    body, table_at = body + bytes(padding), offset + padding
    identity = b"\x7fELF\x01\x01\x01" + bytes(9)
    header = struct.pack(
        "<16sHHIIIIIHHHHHH",
        identity,
        2,  # executable
        243,  # RISC-V
        1,
        address,
        header_size,
        table_at,
        0,
        header_size,
        program_header_size,
        1,
        section_header_size,
        len(headers),
        len(headers) - 1,
    )
    text_at = header_size + program_header_size + (-(header_size + program_header_size) % 16)
    size = len(return_zero)
    program = struct.pack("<8I", 1, text_at, address, address, size, size, 5, 16)
    return header + program + body + b"".join(headers)
