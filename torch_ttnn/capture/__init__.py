"""A model as `explain`, `check` and `export_code` see it: one call, and the programs of all its graphs."""
