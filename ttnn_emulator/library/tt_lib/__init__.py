"""`tt_lib`: the package that ships beside `ttnn` for old scripts."""
