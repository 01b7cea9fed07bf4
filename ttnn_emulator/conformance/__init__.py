"""Asks the real `ttnn`, with no card, and holds the emulator to its answers.

The released wheel runs on a *mock* card: it checks arguments, infers specs and places buffers with its own code; only
kernels do not run. `python -m ttnn_emulator.conformance --help` shows what can be done with it.
"""
