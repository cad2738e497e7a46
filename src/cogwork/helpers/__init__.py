"""The server's own child processes: their start, control channel, heartbeat and log."""
