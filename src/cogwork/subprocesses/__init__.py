"""The programs that the server runs: modules and processes.

`process.py` starts a child in its own session, and ends it with its descendants. It finds the
descendants by their group, by a mark in their environment (`orphans.py`) and by their control
group (`limits.py`). `output.py` splits the output into lines, and limits their length and rate.
All readers share a budget of the event loop's time (`core/limits/loop_budget.py`).

`reaper.py` is a small process that ends the children if the server is killed. `leftovers.py` ends
the remaining ones when the server starts again. `host.py` holds the resources that all children
share. `last_failure.py` counts failures, and stores why a program does not run.
"""
