"""The HTML page of a run, and one that compares two runs: self-contained, without network access."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torch_ttnn.pages.assembly import BLOCKS_SCRIPT, BLOCKS_STYLE, assemble, card, embedded, safe
from torch_ttnn.tracer.reports.page_data import page_data, shortened
from torch_ttnn.tracer.reports.summary import PHASES, ModelPhase, Summary
from torch_ttnn.tracer.reports.verdicts import lowered_share

PAGES = "torch_ttnn.tracer.reports.files"
STYLES = [BLOCKS_STYLE, "page.css"]
SCRIPTS = [BLOCKS_SCRIPT, "charts.js", "state.js", "lists.js", "details.js"]
SKIPPED = 200  # skipped files that are listed by name
SCALES = ((10**18, "E"), (10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"))


def render(summary: Summary, title: str = "Operations of models") -> str:
    """The page of one run as HTML text."""
    return _page(title, [summary], [title], "run.js")


def compare(
    before: Summary, after: Summary, titles: tuple[str, str] = ("before", "after"), title: str = "Two runs compared"
) -> str:
    """The page that compares two runs: added, removed and changed operations; those with fewer lowered calls first."""
    return _page(title, [before, after], titles, "compare.js")


def _page(title: str, runs: Sequence[Summary], titles: Sequence[str], script: str) -> str:
    data = embedded(page_data(runs, titles))
    return assemble(
        PAGES,
        "page.html",
        STYLES,
        [*SCRIPTS, script],
        generator="tracer",
        title=safe(title),
        summary=_summary(runs, titles),
        data=data,
    )


# -- the head of the page ---------------------------------------------------------------------------------------------


def _summary(runs: Sequence[Summary], titles: Sequence[str]) -> str:
    versions = [_versions(run) for run in runs]
    if len(runs) > 1:
        versions = [f"{title}: {each or 'versions unknown'}" for title, each in zip(titles, versions)]
    lines = [f'<p class="quiet">{safe(each)}</p>' for each in versions if each]
    skipped = [_skipped(run, title if len(runs) > 1 else "") for run, title in zip(runs, titles)]
    return "\n".join(
        [*lines, '<div class="cards">', *_cards(runs), "</div>", '<div class="skips">', *skipped, "</div>"]
    )


def _versions(run: Summary) -> str:
    return ", ".join(
        f"{package} {' and '.join(sorted(versions))}" for package, versions in sorted(run.versions.items())
    )


def _cards(runs: Sequence[Summary]) -> list[str]:
    def shown(texts: list[str]) -> str:
        return " → ".join(dict.fromkeys(texts)) if len(set(texts)) > 1 else texts[0]

    totals = [_totals(run) for run in runs]
    skipped = [len(run.bad) for run in runs]
    shares = [_percent(total.lowering) for total in totals]
    cards = [
        card("", shown([str(len(run.models)) for run in runs]), "models"),
        card("", shown([count_text(total.graphs) for total in totals]), "graphs", _by_phase(runs, "graphs")),
        card("", shown([count_text(total.ops) for total in totals]), "calls", _by_phase(runs, "ops")),
        card("", shown([str(total.distinct_ops) for total in totals]), "distinct operations"),
        card("", shown([count_text(total.flops) for total in totals]), "FLOPs", _by_phase(runs, "flops")),
    ]
    if any(shares):
        cards.append(card("device", shown([each or "?" for each in shares]), "of calls lowered"))
    if any(skipped):
        cards.append(card("host", shown([str(each) for each in skipped]), "files skipped"))
    return cards


def _totals(run: Summary) -> ModelPhase:
    """Totals over models and phases."""
    parts = [part for model in run.models.values() for part in model.phases.values()]
    lowering: Counter[str] = Counter()
    for part in parts:
        lowering.update(part.lowering)
    return ModelPhase(
        graphs=sum(part.graphs for part in parts),
        ops=sum(part.ops for part in parts),
        distinct_ops=len(set().union(*run.phases.values())),
        flops=sum(part.flops for part in parts),
        lowering=lowering,
    )


def _by_phase(runs: Sequence[Summary], fact: str) -> str:
    def total(run: Summary, phase: str) -> str:
        return count_text(sum(getattr(model.phases[phase], fact) for model in run.models.values()))

    return "; ".join(f"{name} {' → '.join(total(run, phase) for run in runs)}" for phase, name in PHASES.items())


def _percent(lowering: Counter[str]) -> str:
    """Rounded down, so that 100% means all."""
    share = lowered_share(lowering)
    return "" if share is None else f"{int(share * 1000) / 10:g}%"


def _skipped(run: Summary, title: str) -> str:
    if not run.bad:
        return ""
    rows = [f"<li><code>{safe(shortened(name))}</code> {safe(shortened(why))}</li>" for name, why in run.bad[:SKIPPED]]
    if len(run.bad) > SKIPPED:
        rows.append(f"<li>… and {len(run.bad) - SKIPPED} more</li>")
    of_run = f" of {safe(title)}" if title else ""
    head = f"{len(run.bad)} file(s){of_run} were skipped, and are not counted"
    return f'<details class="note skipped"><summary>{head}</summary><ul>{"".join(rows)}</ul></details>'


def count_text(count: int) -> str:
    """
    >>> count_text(12345), count_text(4_120_000_000)
    ('12,345', '4.12 G')
    """
    for scale, letter in SCALES:
        if count >= scale:
            return f"{count / scale:.3g} {letter}" if count < 1000 * scale else f"{count // scale:,} {letter}"
    return f"{count:,}"
