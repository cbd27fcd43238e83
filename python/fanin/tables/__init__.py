"""The tables of a result folder, and the numbers of its summary."""
