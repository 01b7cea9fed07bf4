"""`python -m torch_ttnn.cli`, where the command itself is not installed."""

import sys

from torch_ttnn.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
