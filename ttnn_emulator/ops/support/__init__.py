"""What operations of several families share; nothing here registers an operation."""
