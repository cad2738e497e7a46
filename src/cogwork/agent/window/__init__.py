"""The maintenance window: when an update may interrupt the machine."""
