"""What happens around operations: listeners, traces, command queues, captured graphs."""
