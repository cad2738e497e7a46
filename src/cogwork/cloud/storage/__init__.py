"""Storage of the cloud: an interface for each kind of data, and engines for one process.

To add a column:

1. Append a step to `MIGRATIONS` in `schema.py`. `sqlite_records.py` runs the steps that a database
lacks when it is opened. 2. Add the field at the end of the row in `tables.py`, because new columns
are added at the end of a table. A test compares the two. 3. Set it where rows are inserted. mypy
finds the places.

A step that is a function must not use `tables.py`, whose rows are those after the last step.
"""
