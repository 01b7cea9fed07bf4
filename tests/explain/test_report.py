"""The data of a report, and its page: complete, self-contained, and quick for large programs."""

from __future__ import annotations

import cProfile
import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

from tests.browser import opened, running
from tests.compiler.against_torch import run
from tests.compiler.small_models import transformer
from torch_ttnn.compiler.analysis.memory import Memory, measure
from torch_ttnn.compiler.ir.metadata import PATH, PREPARED
from torch_ttnn.explain import Explanation, explain, page
from torch_ttnn.explain.data import NodeView, ProgramReport, Report, bytes_text, describe
from torch_ttnn.explain.graph_layout import COLUMN, place


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    with torch.no_grad():
        return explain(transformer(1), torch.randn(2, 33, 64))


class _Page(HTMLParser):
    """Collects what a browser would fetch, and the page's data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.open.append(tag)
        self.fetched += [value for name, value in attrs if name in ("src", "href", "srcset", "action")]

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)


def test_page_is_self_contained(explanation: Explanation, tmp_path: Path):
    path = tmp_path / "reports" / "page.html"
    text = explanation.to_html(path)
    assert path.read_text(encoding="utf-8") == text
    assert [each.name for each in path.parent.iterdir()] == ["page.html"]  # no temporary file is left
    parsed = _Page(text)
    assert not parsed.fetched
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", text)
    assert "{{" not in text


def test_page_runs_in_a_browser(explanation: Explanation, tmp_path: Path):
    path = tmp_path / "page.html"
    explanation.to_html(path)
    with running() as browser, opened(browser, path) as tab:
        steps = tab.get_by_role("region", name="Steps", exact=True)
        operations = steps.locator("tbody td:nth-child(2)")
        everything = operations.all_inner_texts()
        assert len(everything) > 10
        steps.get_by_role("button", name="operation").click()
        assert operations.all_inner_texts() == sorted(everything)
        tab.get_by_label("filter Steps").fill("linear")
        assert set(operations.all_inner_texts()) == {"ttnn.linear"}
        operations.first.click()
        assert tab.evaluate("program.nodes[view.pinned].op") == "ttnn.linear"  # the graph shows what was clicked


def test_page_contains_the_whole_program(explanation: Explanation):
    data = json.loads(_Page(explanation.to_html()).scripts[0])
    (program,) = data["programs"]
    graph = explanation.programs[0].graph
    drawn = [node for node in graph.nodes if not PREPARED.on(node)]
    assert [node["name"] for node in program["nodes"]] == [node.name for node in drawn]
    assert {"input", "device", "move", "output"} <= {node["kind"] for node in program["nodes"]}
    linear = next(node for node in program["nodes"] if node["op"] == "ttnn.linear")
    assert "bfloat16 TILE" in linear["spec"]
    assert "small_models.py" in linear["source"]
    assert linear["weights"]
    assert len(program["steps"]) == sum(PATH.on(node) for node in graph.nodes)
    assert max(step[2] for step in program["steps"]) <= explanation.memory.dram_peak


def test_text_of_the_model_cannot_break_the_page():
    node = NodeView("x", "</script><b>", "host", (), note="<img src=x>")
    program = ProgramReport("p</script>", {}, [], [], [], 1, "# </script>", [node], Memory(0, 0, 0))
    parsed = _Page(page.render(Report([program], {})))
    assert not parsed.fetched
    assert json.loads(parsed.scripts[0])["programs"][0]["nodes"][0]["op"] == "</script><b>"


def test_nodes_do_not_overlap(explanation: Explanation):
    places = place(explanation.report.programs[0].nodes)
    rows: dict[float, list[float]] = {}
    for x, y in places:
        rows.setdefault(y, []).append(x)
    for row in rows.values():
        row.sort()
        assert all(right - left >= COLUMN - 1e-6 for left, right in itertools.pairwise(row))


def test_producers_are_above_consumers(explanation: Explanation):
    nodes = explanation.report.programs[0].nodes
    height = {node.name: y for node, (_, y) in zip(nodes, place(nodes))}
    assert all(height[giver] < height[node.name] for node in nodes for giver in node.inputs)


def test_the_cost_of_a_page_is_linear_in_its_nodes():
    small, large = calls_of(500), calls_of(5000)
    assert large < 12 * small


def calls_of(nodes: int) -> int:
    """Function calls needed for a page; unlike seconds, they do not depend on the machine."""
    chain = [NodeView("n0", "ttnn.relu", "device", ())]
    for number in range(1, nodes):
        inputs = (f"n{number - 1}",) if number % 7 else (f"n{number - 1}", f"n{max(number - 20, 0)}")
        chain.append(NodeView(f"n{number}", "ttnn.add", "device", inputs))
    program = ProgramReport("large", {"ttnn.add": nodes - 1}, [], [], [], nodes, "", chain, Memory(0, 0, 0))
    profile = cProfile.Profile()
    text = profile.runcall(page.render, Report([program], {}))
    assert len(text) < 200_000 + 600 * nodes
    return sum(entry.callcount for entry in profile.getstats())


def test_a_move_between_layouts_names_both():
    outcome = run(lambda x: torch.relu(x).to(torch.int32), torch.randn(32, 32))
    report = describe(outcome.program, measure(outcome.program))
    casts = [node for node in report.nodes if node.op == "ttnn.typecast"]
    assert all(node.kind == "device" for node in casts)  # casts of the model itself
    assert not [move for move in report.moves if move.kind == "typecast"]


@pytest.mark.parametrize("count, text", [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB")])
def test_bytes_as_text(count: int, text: str):
    assert bytes_text(count) == text
