"""The fleet cloud: organizations, machines, their configurations and their logs."""
