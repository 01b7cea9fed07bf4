"""`python -m torch_ttnn`: the same as `torch-ttnn demo`."""

import sys

from torch_ttnn.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
