"""Results as Markdown: the block in README.md, the full table, and our rows beside those of the older compiler."""
