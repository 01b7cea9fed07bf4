"""What `explain`, `check` and `export_code` share: the call of a model, and the programs of all its graphs."""
