"""Other machines whose resources are part of this one."""
