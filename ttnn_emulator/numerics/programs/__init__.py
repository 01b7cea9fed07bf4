"""What the programs of each family of operations compute, with the units, formats and functions beside this."""
