"""Puts pages together out of a template, styles, scripts and data: one file that a browser shows without a network."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

SHARED = "torch_ttnn.pages.files"  # the package of the files that pages have in common
FRAME, SHARED_STYLE, SHARED_SCRIPT = "frame.html", "base.css", "parts.js"
BLOCKS_STYLE, BLOCKS_SCRIPT = f"{SHARED}:blocks.css", f"{SHARED}:blocks.js"  # of pages with many tables and charts
_MARK = re.compile(r"\{\{(\w+)\}\}")


def assemble(package: str, template: str, styles: Iterable[str], scripts: Iterable[str], **parts: str) -> str:
    """The page as text. Styles and scripts are files of the package, after those that all pages share; those of
    another package are written `package:file`.

    The template is what its body shows; the frame around it is that of all pages, and wants a `title`, a `generator`
    and `data`. Its marks `{{style}}`, `{{script}}` and `{{policy}}` are filled here, all others from `parts`, which
    must be HTML already. Each mark is filled once, so that a text with such a mark in it is left as it is.
    """
    style = "\n".join([_file(SHARED, SHARED_STYLE), *[_file(package, name) for name in styles]])
    script = "\n" + "\n".join([_file(SHARED, SHARED_SCRIPT), *[_file(package, name) for name in scripts]])
    known: Mapping[str, str] = {**parts, "style": style, "script": script, "policy": _policy(script)}
    page = _file(SHARED, FRAME).replace("{{body}}", _file(package, template))
    return _MARK.sub(lambda mark: known[mark[1]], page)


def embedded(data: Any) -> str:
    """Data as JSON that can't end the script element that holds it."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def safe(text: str) -> str:
    """Any text as HTML; half characters, which no file can hold, are replaced."""
    return html.escape(text.encode("utf-8", "replace").decode(), quote=True)


def card(kind: str, number: Any, name: str, detail: str = "") -> str:
    """A number that stands out, with what it counts."""
    title = f' title="{safe(detail)}"' if detail else ""
    return f'<div class="card {kind}"{title}><b>{safe(str(number))}</b><span>{safe(name)}</span></div>'


def _policy(script: str) -> str:
    """The browser runs our script and no other, and fetches nothing, whatever a model has for a name."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"


@functools.lru_cache(maxsize=64)  # a site is hundreds of pages of the same few files
def _file(package: str, name: str) -> str:
    if ":" in name:
        package, name = name.split(":")
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
