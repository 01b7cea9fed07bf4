"""The stages of the compiler, one module each; `pipeline.py` lists them in order."""
