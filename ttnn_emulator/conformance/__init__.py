"""Runs the real `ttnn` without a card and compares the emulator with it.

The released wheel runs on a *mock* card: it checks arguments, infers specs and allocates buffers with its own code, but
runs no kernels. `python -m ttnn_emulator.conformance --help` lists the commands.
"""
