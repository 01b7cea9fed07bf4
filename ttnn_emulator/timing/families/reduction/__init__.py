"""Reductions, scans, sorting."""
