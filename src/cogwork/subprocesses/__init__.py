"""Programs of others that the server runs, as modules and as processes.

`process.py` starts a child in its own session, and ends it with its descendants. It finds them
by their group, by a mark in their environment (`orphans.py`) and by their control group
(`limits.py`). `output.py` splits the output into lines and bounds them; all readers share a
budget of the event loop's time (`core/limits/loop_budget.py`).

`reaper.py` is a small process that ends the children if the server is killed, and `leftovers.py`
ends at the next start what is left. `host.py` holds what all children share. `last_failure.py`
counts failures and says why a program does not run.
"""
