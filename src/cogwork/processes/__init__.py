"""Processes: the programs of the section `processes`, supervised.

`manager.py` starts and stops processes to match the configuration. Each process has its own loop
(`process.py`): start, wait for the exit, end the descendants that are left, and restart with
back-off. `launch_spec.py` finds the program, its user and its environment.
"""
