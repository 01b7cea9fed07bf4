"""Memory configs in the words that ttnn-visualizer parses.

Release 0.81.1 prints shard specs as `ShardSpec{grid=[{"start":…`, which ttnn-visualizer 0.108.0 does not know: it
would show sharded tensors as not sharded. Its pattern is that of releases before.
"""

from __future__ import annotations

import re

# ttnn-visualizer 0.108.0: ttnn_visualizer/utils.py, SHARD_SPEC_PATTERN
_PRINTED = re.compile(r"ShardSpec\{grid=(\[.*?\]), shape=\[(\d+), (\d+)\], orientation=(ShardOrientation::\w+)\}")
_RANGE = re.compile(r'"start":\{"x":(\d+),"y":(\d+)\},"end":\{"x":(\d+),"y":(\d+)\}')


def for_visualizer(text: str) -> str:
    """The text with every shard spec rewritten."""
    return _PRINTED.sub(_rewritten, text) if "ShardSpec{" in text else text


def _rewritten(found: re.Match[str]) -> str:
    ranges = (f"[(x={a},y={b}) - (x={c},y={d})]" for a, b, c, d in _RANGE.findall(found[1]))
    grid = "{" + ", ".join(ranges) + "}"
    return f"ShardSpec(grid={grid},shape={{{found[2]}, {found[3]}}},orientation={found[4]},halo=0)"
