"""Results as Markdown: the block in README.md, the full table, and the comparison with the older compiler."""
