"""The public API of the released `ttnn`, as recorded from the library itself, and how its calls bind arguments."""
