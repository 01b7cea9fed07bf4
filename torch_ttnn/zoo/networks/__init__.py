"""Networks that no library has, written here after their papers and published configurations."""
