"""`cogwork-server`: options, assembly, start and stop of one machine.

`main.py` parses the options and prepares the process before grpc is imported. `assembly.py` builds
the parts. `serve.py` reads the configuration far enough to know where to listen, listens, prints
the `serving` line, and only then builds resources. `ServerParts.apply` hands each configuration to
the parts.

`watchdog.py` monitors the event loop from a thread. If the loop is stuck, the watchdog stops
everything that moves and finally ends the process.

`closing.py` lists the steps that close the parts. The server first accepts no new connections or
configurations. It closes resources, dependents first, while open connections are still served, and
then closes the connections. Meanwhile, clients see the same list of resources, and their calls are
refused with the reason, except calls that stop something. A watchdog in C ends the process if
closing hangs (`serving/shutdown.py`).

`discovery.py` lets clients find the machine by name. `cloud_membership.py` connects the parts to
the cloud that the configuration names.
"""
