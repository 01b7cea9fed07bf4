"""The public API of the released `ttnn`, recorded from the library, and the binding of arguments."""
