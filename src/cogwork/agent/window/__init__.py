"""The maintenance window: the times when an update may interrupt the machine."""
