"""Statistics over seeds, and the numbers of a run that they are taken of."""
