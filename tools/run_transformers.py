"""Runs a model of transformers, by default with all its layers.

    PYTHONPATH=$(pwd) python3 tools/run_transformers.py --model phiyodr/bert-large-finetuned-squad2 --backend torch_ttnn

The other arguments are those of `torch-ttnn run`.
"""

import argparse
import sys

from torch_ttnn.cli import main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--model", action="append", required="-h" not in sys.argv and "--help" not in sys.argv)
    parser.add_argument("--layers", default="all")
    chosen, rest = parser.parse_known_args()
    models = [f"transformers:{name}" for name in chosen.model or ()]
    sys.exit(main(["run", *models, "--layers", chosen.layers, *rest]))
