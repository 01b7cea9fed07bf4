"""The results table of the zoo, under the name that the older compiler uses: `torch-ttnn metrics --all`."""

from __future__ import annotations

import sys

from torch_ttnn.cli import main

if __name__ == "__main__":
    sys.exit(main(["metrics", *(sys.argv[1:] or ["--all", "--mode", "both"])]))
