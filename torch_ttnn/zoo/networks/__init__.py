"""Networks that no library has, implemented from their papers and published configurations."""
