"""The agent: keeps a machine's server installed, running and current."""
