"""Every model of the lists can be traced, or has a row with a known reason."""

from __future__ import annotations

import json
import os
import pathlib
import re

import pytest

from tests.zoo.installed import need
from torch_ttnn.cli import main
from torch_ttnn.zoo import catalog
from torch_ttnn.zoo.catalog.timm_table import KINDS

# Models that cannot be traced, with the reason that their row must have.
KNOWN_FAILURES: dict[str, str] = {}

CLASSIFICATION = ["--all", "torchvision", "--task", "classification"]
GROUPS = {
    "classification": (CLASSIFICATION, 80),
    "classification, backward": ([*CLASSIFICATION, "--backward"], 80),
    "segmentation": (["--all", "torchvision", "--task", "segmentation"], 6),
    "detection": (["--all", "torchvision", "--task", "detection"], 12),
    "video and flow": (["--all", "torchvision", "--task", "video", "--task", "optical_flow"], 11),
    "timm": ([f"timm:{name}" for name in KINDS], 30),
    "transformers": (["--all", "transformers"], 40),
}


def workers() -> int:
    """Cores per test run on this machine."""
    return max(1, (os.cpu_count() or 1) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_all_models_of_a_group_are_traced(group: str, tmp_path: pathlib.Path) -> None:
    need("torchvision", "timm", "transformers")
    arguments, least = GROUPS[group]
    main(["stat", *arguments, "--jobs", str(workers()), "-o", str(tmp_path), "--quiet"])
    rows = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*.json")]
    assert len(rows) >= least
    unexplained = {
        row["name"]: row["reason"]
        for row in rows
        if row["status"] != "ok" and not re.search(KNOWN_FAILURES.get(row["name"], "$^"), row["reason"])
    }
    assert unexplained == {}
    good = [row["result"] for row in rows if row["status"] == "ok"]
    assert all(row["forward_ops"] > 0 for row in good)
    assert all((row["backward_ops"] > 0) == ("backward" in group) for row in good)


def test_the_length_of_the_lists() -> None:
    need("torchvision", "timm", "transformers")
    known = catalog.names("timm")
    assert len(set(KINDS)) >= 30
    assert all(f"timm:{name}" in known for name in KINDS)
    assert len(set(catalog.names("transformers"))) >= 40
