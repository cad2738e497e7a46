"""mDNS: announce this machine on the local network, and find others.

`announcement.py` (pure) decides what is answered, and `responder.py` answers on every network
interface, in a thread of its own. `query_limiter.py` (pure) decides which queries are decoded at
all. `search.py` finds machines, and `sightings.py` (pure) decides which answers are from the
same machine.
"""
