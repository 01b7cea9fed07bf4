"""The results table of the zoo, by the name that users of the older compiler know: `torch-ttnn metrics --all`."""

from __future__ import annotations

import sys

from torch_ttnn.cli import main

if __name__ == "__main__":
    sys.exit(main(["metrics", *(sys.argv[1:] or ["--all", "--mode", "both"])]))
