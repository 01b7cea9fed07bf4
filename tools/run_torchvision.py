"""Runs torchvision's models: --model, or all image classifiers.

    PYTHONPATH=$(pwd) python3 tools/run_torchvision.py --backend torch_stat --backward --profile

The other arguments are those of `torch-ttnn run`.
"""

import argparse
import sys

from torch_ttnn.cli import main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--model", action="append", default=[])
    chosen, rest = parser.parse_known_args()
    models = [f"torchvision:{name}" for name in chosen.model] or ["--all", "torchvision"]
    sys.exit(main(["run", *models, *rest]))
