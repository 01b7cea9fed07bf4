"""What is known about a graph without running it: ranges of integers, NaN, bounds of indices, memory."""
