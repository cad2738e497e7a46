"""Write a configuration of viam-server in the words of this machine.

`migrate.py` makes the edits that diagnostics carry, and the edits of `legacy_forms.py`, until no
more are found. An edit after which something else would run is not made.
"""
