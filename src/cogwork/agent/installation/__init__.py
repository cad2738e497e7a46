"""Installation of the agent on a machine, and its removal."""
