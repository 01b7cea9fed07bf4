"""Runs operations: dispatch, listeners, traces, command queues, captured graphs."""
