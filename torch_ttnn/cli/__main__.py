"""`python -m torch_ttnn.cli`, for when the command is not installed."""

import sys

from torch_ttnn.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
