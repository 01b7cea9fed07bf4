"""Threads, memory pages and addresses for the compiled loops."""
