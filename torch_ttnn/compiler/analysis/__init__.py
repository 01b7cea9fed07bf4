"""Static analyses of a graph: ranges of integers, NaN, bounds of indices, memory."""
