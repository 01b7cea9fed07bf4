"""What several packages need of the machine: file names, optional packages, the garbage collector."""
