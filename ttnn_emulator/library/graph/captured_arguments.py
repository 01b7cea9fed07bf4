"""`ttnn.graph_tracer_utils`: converts the arguments of captured calls, which graphs store as text, to JSON.

`Tensor(shape=Shape([2, 3]), dtype=DataType::BFLOAT16)` becomes {"Tensor": {"shape": [2, 3], "dtype": "DataType::…"}}.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

CONTROL = re.compile(r"[\x00-\x1F]")
NAME = re.compile(r"[A-Za-z_][\w:]*")
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?$")
CLOSING = {"(": ")", "{": "}", "[": "]"}


class _Unparsed(ValueError):
    """The text cannot be parsed."""


class _Reader:
    """Parses one value: an object `Name(…)`, a list, a set in braces, or a plain word."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def value(self) -> Any:
        self._space()
        name = NAME.match(self.text, self.at)
        if name and self.text[name.end() : name.end() + 1] in ("(", "{"):
            self.at = name.end()
            return self._inside()
        if self.text[self.at : self.at + 1] in CLOSING:
            return self._inside()
        return self._word()

    def _inside(self) -> Any:
        """The contents of brackets: fields by name, or values in order."""
        opening = self.text[self.at]
        self.at += 1
        fields: dict[str, Any] = {}
        values: list[Any] = []
        while not self._ends(CLOSING[opening]):
            key = re.compile(r"\s*([A-Za-z_]\w*)\s*=").match(self.text, self.at)
            if key:
                self.at = key.end()
                fields[key[1]] = self.value()
            else:
                values.append(self.value())
            self._space()
            if self.text[self.at : self.at + 1] == ",":
                self.at += 1
        if fields:
            return {**fields, **{str(number): value for number, value in enumerate(values)}}
        if opening == "(" and len(values) == 1 and isinstance(values[0], list):
            return values[0]
        if opening == "{" and values and all(isinstance(value, int) for value in values):
            return "{" + ", ".join(map(str, values)) + "}"
        return values

    def _word(self) -> Any:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in ",)]}":
            self.at += 1
        word = self.text[start : self.at].strip()
        if NUMBER.match(word):
            return float(word) if any(mark in word for mark in ".eE") else int(word)
        return word.strip("\"'")

    def _ends(self, closing: str) -> bool:
        self._space()
        if self.at >= len(self.text):
            raise _Unparsed(f"{closing!r} is missing")
        if self.text[self.at] != closing:
            return False
        self.at += 1
        return True

    def _space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1


class GraphTracerUtils:
    """Converts captured graphs to JSON documents."""

    @staticmethod
    def replace_control_chars(value: str) -> str:
        """Escape control characters as \\u00XX."""
        return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04X}", value)

    @staticmethod
    def _convert_to_json(input_str: str, index: int) -> dict[str, Any]:
        name = NAME.match(input_str.strip())
        opens = name is not None and input_str.strip()[name.end() :].startswith("(")
        is_list = input_str.strip().startswith("[")
        if not opens and not is_list:
            return {f"arg{index}": GraphTracerUtils.replace_control_chars(input_str)}
        reader = _Reader(input_str)
        try:
            read = reader.value()
            if input_str[reader.at :].strip():
                raise _Unparsed(f"text follows: {input_str[reader.at :]!r}")
        except _Unparsed as error:
            return {"UnparsedElement": {"error": str(error), "element_info": input_str}}
        return {f"arg{index}": {name[0]: read} if opens and name is not None else read}

    @staticmethod
    def serialize_arguments_to_json(operation_name: str, arguments: Sequence[str]) -> dict[str, Any] | None:
        """One call with its arguments."""
        if not operation_name:
            return None
        read = [GraphTracerUtils._convert_to_json(text, index) for index, text in enumerate(arguments)]
        return {"operation": operation_name, "arguments": read}

    @staticmethod
    def serialize_graph(captured_graph: list[dict[str, Any]]) -> dict[str, Any]:
        """All calls of a graph that have arguments."""
        calls = [
            GraphTracerUtils.serialize_arguments_to_json((node["params"] or {}).get("name", ""), node["arguments"])
            for node in captured_graph
            if node["arguments"]
        ]
        return json.loads(json.dumps({"content": calls}))
