"""What the cloud stores: one interface for each kind of data, with the engine for one process."""
