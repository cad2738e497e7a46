"""The commands of `cogwork-cloud`."""
