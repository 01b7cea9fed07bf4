"""Records the operations of torchvision's models: the named ones, or all image classifiers.

    PYTHONPATH=$(pwd) python3 tools/stat_torchvision.py; ls stat/raw

Inputs are [1, 3, 224, 224] by default. The arguments are those of `torch-ttnn stat`.
"""

import sys

from torch_ttnn.cli import main

if __name__ == "__main__":
    named = any(not argument.startswith("-") for argument in sys.argv[1:2])
    sys.exit(main(["stat", *([] if named or "--all" in sys.argv else ["--all", "torchvision"]), *sys.argv[1:]]))
