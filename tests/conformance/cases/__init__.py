"""Tables of cases: one module per family of operations, each with a function `cases()`."""
