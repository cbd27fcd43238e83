"""Words and numbers for people: quantities with units, tables in a terminal."""
