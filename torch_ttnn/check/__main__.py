"""`python -m torch_ttnn.check`: check every call of compiled models with the real `ttnn`."""

import sys

from torch_ttnn.check.models import main

if __name__ == "__main__":
    sys.exit(main())
