"""Reports on traces: `python3 tools/generate_report.py; ls stat/`.

The arguments are those of `torch-ttnn report`.
"""

import sys

from torch_ttnn.cli import main

if __name__ == "__main__":
    sys.exit(main(["report", *sys.argv[1:]]))
