"""Products of matrices: program selection, checks, buffers, and matmul's relatives."""
