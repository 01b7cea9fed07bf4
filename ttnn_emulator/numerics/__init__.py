"""The chip's arithmetic: formats, units, functions, the programs that use them, and the compiled loops below."""
