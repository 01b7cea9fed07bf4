"""Helpers of several packages: file names, options, and the garbage collector."""
