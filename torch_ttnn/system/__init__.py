"""What several packages need of the machine: file names and the garbage collector."""
