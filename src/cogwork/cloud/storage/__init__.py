"""Storage of the cloud: an interface for each kind of data, and engines for one process."""
