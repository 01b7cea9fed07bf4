"""`python -m ttnn_emulator script.py [arguments]`: run a script that imports `ttnn` on the emulator."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from contextlib import AbstractContextManager, nullcontext

import ttnn_emulator
from ttnn_emulator.hardware.boards import BOARD_VARIABLE, names_with_grids


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m ttnn_emulator",
        description=(
            "Run a script that says `import ttnn` on an emulated card, unchanged. A real ttnn, if one is installed, is "
            "left alone: only this process sees the emulator in its place."
        ),
        epilog=f"The board is {BOARD_VARIABLE} or n150; there are {', '.join(names_with_grids())}.",
    )
    parser.add_argument("--board", choices=names_with_grids(), help="the card to emulate")
    parser.add_argument("--demo", action="store_true", help="show the emulated device at work")
    parser.add_argument(
        "--profile",
        metavar="FOLDER",
        help="write a performance sheet with predicted times, and what profilers' tools read beside it, to this folder",
    )
    parser.add_argument("script", nargs="?", help="the script to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    options = parser.parse_args(argv)
    if options.board:
        os.environ[BOARD_VARIABLE] = options.board
    if options.demo:
        from ttnn_emulator.demo import show

        show()
        return 0
    if options.script is None:
        parser.print_help()
        return 2
    ttnn_emulator.install_as_ttnn()
    sys.argv = [options.script, *options.arguments]
    from ttnn_emulator.profiling.memory_report import as_configured

    try:
        with _profile(options.profile), as_configured():
            runpy.run_path(options.script, run_name="__main__")
    except OSError as error:
        if options.profile is None or not _is_of_folder(error, options.profile):
            raise
        print(f"{parser.prog}: the profile cannot be written to {options.profile}: {error}", file=sys.stderr)
        return 2
    return 0


def _profile(folder: str | None) -> AbstractContextManager[None]:
    if folder is None:
        return nullcontext()
    from ttnn_emulator.profiling.report_folder import profiling

    return profiling(folder)


def _is_of_folder(error: OSError, folder: str) -> bool:
    """Whether an error is about the folder of the profile, not one of the script."""
    return error.filename is not None and os.path.abspath(error.filename).startswith(os.path.abspath(folder))


if __name__ == "__main__":
    sys.exit(main())
