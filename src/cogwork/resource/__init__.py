"""Resources: models and their registry, the gRPC services of each API, frames and labels.

`registry.py` knows every model that runs in this process. `services` has our gRPC service for each
API whose SDK service does not fit; `sdk` imports the SDK, runs classes written for modules in this
process, and creates clients for resources in other processes; `messages` converts between messages
of the public API and Python values. `machine_access.py` lets a service reach the other resources of
its machine.
"""
