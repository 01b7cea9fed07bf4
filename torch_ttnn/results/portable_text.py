"""Removes what is specific to a machine from texts stored with results: paths of folders are shortened."""

from __future__ import annotations

import os
import pathlib
import re
import sysconfig

_INSTALLED = re.compile(r"(?<![\w/.])/[^\s\"':]*/(?:site|dist)-packages/")
_STANDARD = sysconfig.get_paths()["stdlib"]
_OURS = pathlib.Path(__file__).parents[2]


def portable(text: str) -> str:
    """The text with paths relative to site-packages, our sources, the working folder or the user's home.

    >>> portable("/usr/lib/python3/dist-packages/timm/layers/mlp.py:43: x = self.act(x)")
    'timm/layers/mlp.py:43: x = self.act(x)'
    """
    text = _INSTALLED.sub("", text)
    for folder, name in ((str(_OURS), ""), (_STANDARD, ""), (os.getcwd(), ""), (str(pathlib.Path.home()), "~/")):
        if len(folder) > 1:
            text = text.replace(folder + os.sep, name)
    return text
