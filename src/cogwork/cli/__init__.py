"""`cogwork`: commands for people who configure and operate machines.

`commands.py` lists the commands, declared as tables in `parsers`; each names the function that
runs it, which is imported when it is needed. `client` has the connections to machines: over
HTTP, over gRPC, and what a server of another make lacks. `fleet` is a client of the cloud's
public API, and imports nothing of `cogwork.cloud`.
"""
