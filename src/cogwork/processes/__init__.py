"""Processes: the programs of the section `processes`, supervised.

`manager.py` keeps them equal to the configuration. Each has a loop of its own (`process.py`):
start, wait for the exit, end the processes that it left behind, and restart with back-off.
`launch_spec.py` finds the program, its user and its environment.
"""
