"""The plane {0, ..., 2^d - 1}^2: halfplanes as lattice points, regions made of them, and distributions; see `halfplanes`, `polygons`."""
