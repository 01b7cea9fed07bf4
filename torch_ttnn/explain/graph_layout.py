"""Layered layout of a program's graph, top to bottom in the order of data flow.

Linear in the number of nodes apart from sorting each layer, because programs have up to ten thousand calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch_ttnn.explain.data import NodeView

COLUMN, ROW = 200.0, 70.0  # space per node
SWEEPS = 4


def place(nodes: Sequence[NodeView]) -> list[tuple[float, float]]:
    """The centre of every node; nodes are in execution order."""
    number = {node.name: index for index, node in enumerate(nodes)}
    producers = [[number[name] for name in node.inputs if name in number] for node in nodes]
    consumers: list[list[int]] = [[] for _ in nodes]
    for index, inputs in enumerate(producers):
        for producer in inputs:
            consumers[producer].append(index)
    layers = _layers(producers, consumers)
    rows: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for index, layer in enumerate(layers):
        rows[layer].append(index)
    x = [0.0] * len(nodes)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        for row in rows if downwards else reversed(rows):
            _arrange(row, producers if downwards else consumers, x)
    return [(x[index], layers[index] * ROW) for index in range(len(nodes))]


def _layers(producers: list[list[int]], consumers: list[list[int]]) -> list[int]:
    """One layer below the lowest producer; a node without producers is directly above its first consumer."""
    layers = [0] * len(producers)
    for index, inputs in enumerate(producers):
        layers[index] = max([layers[producer] + 1 for producer in inputs], default=0)
    for index in range(len(producers) - 1, -1, -1):
        if not producers[index] and consumers[index]:
            layers[index] = max(min(layers[consumer] for consumer in consumers[index]) - 1, 0)
    return layers


def _arrange(row: list[int], neighbours: list[list[int]], x: list[float]) -> None:
    """Each node near the mean of its neighbours, without overlaps, the row as a whole centred on its neighbours."""
    wanted = {
        index: sum(x[each] for each in neighbours[index]) / len(neighbours[index]) if neighbours[index] else x[index]
        for index in row
    }
    row.sort(key=wanted.__getitem__)
    at = float("-inf")
    for index in row:
        at = x[index] = max(wanted[index], at + COLUMN)
    shift = sum(wanted[index] - x[index] for index in row) / len(row)
    for index in row:
        x[index] += shift
