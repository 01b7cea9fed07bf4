"""`python -m torch_ttnn`: compile real models and show what happened, as `torch-ttnn demo` does."""

import sys

from torch_ttnn.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
