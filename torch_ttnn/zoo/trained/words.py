"""Nouns and their definitions from WordNet, in the format of its database files."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass

from torch_ttnn.zoo.trained.packages import WORDNET, DataError

NOUN = "%1:"  # of a sense key, `dog%1:05:00::`


@dataclass(frozen=True)
class Definition:
    word: str
    text: str


def definitions(number: int, folder: pathlib.Path | None = None) -> list[Definition]:
    """The most frequent nouns of WordNet's tagged texts, each with the definition of its most common sense.

    Nouns of several words, and those whose definition contains the word itself, are skipped.
    """
    dictionary = WORDNET.find(folder) / "dict"
    meanings = read_definitions(dictionary / "data.noun")
    found: list[Definition] = []
    seen: set[str] = set()  # one answer per meaning: its most frequent word
    for word, meaning in read_uses(dictionary / "index.sense"):
        if meaning not in meanings:
            raise DataError(
                f"{dictionary / 'index.sense'} names the meaning {meaning} of {word!r}, which data.noun lacks"
            )
        text = meanings[meaning]
        if meaning in seen or word in text.lower() or not word.isalpha():
            continue
        seen.add(meaning)
        found.append(Definition(word, text))
        if len(found) == number:
            break
    return found


def read_definitions(path: pathlib.Path) -> dict[str, str]:
    """Definitions by id of the meaning, without the quoted examples that follow."""
    found = {}
    for number, line in enumerate(_lines(path), 1):
        if line.startswith("  "):  # the licence
            continue
        head, bar, gloss = line.partition(" | ")
        if not bar or not head[:8].isdigit():
            raise DataError(f"line {number} of {path} is not an entry of WordNet: {line[:60]!r}")
        found[head[:8]] = gloss.split('; "')[0].strip().rstrip(";")
    return found


def read_uses(path: pathlib.Path) -> list[tuple[str, str]]:
    """Nouns and the ids of their first meanings by frequency, without those that never occur."""
    uses = []
    for number, line in enumerate(_lines(path), 1):
        parts = line.split()
        if len(parts) != 4 or not all(part.isdigit() for part in parts[1:]):
            raise DataError(f"line {number} of {path} is not a sense of WordNet: {line[:60]!r}")
        key, meaning, order, count = parts
        if NOUN in key and order == "1" and count != "0":
            uses.append((-int(count), key.partition("%")[0], meaning))
    return [(word, meaning) for _, word, meaning in sorted(uses)]


def _lines(path: pathlib.Path) -> list[str]:
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    return path.read_text(encoding="utf-8").splitlines()
