"""Logs: rules and redaction, then console, file, ring buffer and spool.

`rules.py` computes the levels of the standard library's loggers, and `loggers.py` applies them to
existing and new ones. `logger_names.py` lists the names by which a pattern may refer to a logger.
Entries of modules and clients arrive in `robot/services/log.py`.

One handler, `pipeline.py`, redacts and truncates every text of a record, suppresses repeats
(`dedup.py`) and passes the record to the outputs. `redactor.py` has the secrets. It also redacts
reasons, errors for clients and the machine's journal, at the places where these are created. Every
text output escapes what it prints (`core/escape.py`).

Logging never waits for an output: each `Sink` (`sink.py`) is a thread with a bounded queue in front
of a terminal or a file. `spool.py` keeps lines on disk until the cloud has received them.
"""
