"""Threads, pages and addresses under the compiled loops."""
