"""Case tables: one module per family of operations, with a function `cases()` and optionally `NUMERIC_ROWS`."""
