"""Markdown for results tables: cells with escaped text, and formatted numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch_ttnn.results.record import FAILS, ON_DEVICE, WITH_HOST_OPS, Predicted

SYMBOLS = {ON_DEVICE: "✅", WITH_HOST_OPS: "🚧", FAILS: "❌"}
MEANINGS = {ON_DEVICE: "every operation on the device", WITH_HOST_OPS: "some operations on the host", FAILS: "fails"}
UNKNOWN = "–"

_SPECIAL = re.compile(
    r"[\\`*\[\]|]|(?<![^\W_])_|_(?![^\W_])|~(?=~)|!(?=\[)"
)  # underscores within words are not escaped
_SPACES = re.compile(r"\s+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")


@dataclass(frozen=True)
class Column:
    """A heading and its explanation."""

    title: str
    meaning: str
    number: bool = False


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table whose cells are Markdown.

    >>> table([Column("Model", ""), Column("PCC", "", number=True)], [["a", "0.99"]])
    ['| Model | PCC |', '|:--|--:|', '| a | 0.99 |']
    """
    heads = " | ".join(column.title for column in columns)
    sides = "|".join("--:" if column.number else ":--" for column in columns)
    return [f"| {heads} |", f"|{sides}|", *[f"| {' | '.join(row)} |" for row in rows]]


def meanings(columns: Iterable[Column]) -> list[str]:
    """A list that explains every column."""
    return [f"- **{column.title}**: {column.meaning}" for column in columns if column.meaning]


def plain(text: str) -> str:
    """Any text escaped as Markdown, on one line.

    >>> plain("a|b <script> *x*"), plain("regnet_y_8gf")
    ('a\\\\|b &lt;script&gt; \\\\*x\\\\*', 'regnet_y_8gf')
    """
    one_line = _SPACES.sub(" ", _CONTROL.sub(" ", text.encode("utf-8", "replace").decode())).strip()
    escaped = one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(lambda found: "\\" + found[0], escaped)


# -- numbers ----------------------------------------------------------------------------------------------------------


def seconds(value: float) -> str:
    """Three digits; empty if there is no time.

    >>> seconds(0.012345), seconds(123.4), seconds(0.0)
    ('0.0123', '123', '–')
    """
    if not math.isfinite(value) or value <= 0:
        return UNKNOWN
    digits = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:.{digits}f}"


def predicted_ms(predicted: Predicted | None) -> str:
    """Milliseconds on the device; empty without a prediction.

    >>> predicted_ms(Predicted("n150", 2, 1.2e-3, 4e-5, 0, 0, 0, 0)), predicted_ms(None)
    ('1.24', '')
    """
    return "" if predicted is None else seconds(predicted.device_seconds * 1e3)


def pcc(value: float | None) -> str:
    """Five digits, rounded down, so that 0.99 is at least 0.99.

    >>> pcc(0.989999), pcc(1.0), pcc(None)
    ('0.98999', '1.00000', '–')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{math.floor(value * 1e5 + 1e-9) / 1e5:.5f}"


def share(part: int, whole: int) -> str:
    """In percent, rounded down, so that 100 % means all.

    >>> share(199, 200), share(3, 3)
    ('99.5 %', '100 %')
    """
    return f"{math.floor(1000 * part / whole) / 10:g} %" if whole else UNKNOWN


def with_unique(count: int, unique: int) -> str:
    """
    >>> with_unique(1393, 21)
    '1,393 (21)'
    """
    return f"{count:,} ({unique:,})" if count else "0"


def millions(parameters: int) -> str:
    """
    >>> millions(11_689_512), millions(1_200), millions(0)
    ('11.7', '<0.1', '–')
    """
    if not parameters:
        return UNKNOWN
    return f"{parameters / 1e6:,.1f}" if parameters >= 1e5 else "<0.1"


def plural(count: int, one: str, several: str = "") -> str:
    """
    >>> plural(1, "model"), plural(3, "entry", "entries")
    ('1 model', '3 entries')
    """
    return f"{count:,} {one if count == 1 else several or one + 's'}"
