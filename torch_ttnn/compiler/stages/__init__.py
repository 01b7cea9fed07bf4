"""The stages of the compiler, one module each; `pipeline.py` has their order."""
