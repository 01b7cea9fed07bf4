"""Assembles self-contained HTML pages from a template, styles, scripts and data."""

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
BLOCKS_STYLE, BLOCKS_SCRIPT = f"{SHARED}:blocks.css", f"{SHARED}:blocks.js"  # for pages with many tables and charts
_MARK = re.compile(r"\{\{(\w+)\}\}")


def assemble(package: str, template: str, styles: Iterable[str], scripts: Iterable[str], **parts: str) -> str:
    """The page as text. Styles and scripts are files of the package, added after the shared ones; `package:file` names
    a file of another package.

    The template is the body of the page; the shared frame around it needs a `title`, a `generator` and `data`. The
    placeholders `{{style}}`, `{{script}}` and `{{policy}}` are filled here, all others from `parts`, which must be
    HTML. Substitution is not recursive: placeholders within inserted texts stay as they are.
    """
    style = "\n".join([_file(SHARED, SHARED_STYLE), *[_file(package, name) for name in styles]])
    script = "\n" + "\n".join([_file(SHARED, SHARED_SCRIPT), *[_file(package, name) for name in scripts]])
    known: Mapping[str, str] = {**parts, "style": style, "script": script, "policy": _policy(script)}
    page = _file(SHARED, FRAME).replace("{{body}}", _file(package, template))
    return _MARK.sub(lambda mark: known[mark[1]], page)


def embedded(data: Any) -> str:
    """Data as JSON that cannot close the script element around it."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def safe(text: str) -> str:
    """Any text as HTML; lone surrogates, which cannot be encoded, are replaced."""
    return html.escape(text.encode("utf-8", "replace").decode(), quote=True)


def card(kind: str, number: Any, name: str, detail: str = "") -> str:
    """A prominent number with a caption."""
    title = f' title="{safe(detail)}"' if detail else ""
    return f'<div class="card {kind}"{title}><b>{safe(str(number))}</b><span>{safe(name)}</span></div>'


def _policy(script: str) -> str:
    """Content security policy: the browser runs only our script and fetches nothing, for any content of the page."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"


@functools.lru_cache(maxsize=64)  # a site is hundreds of pages of the same few files
def _file(package: str, name: str) -> str:
    if ":" in name:
        package, name = name.split(":")
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
