"""The resource graph: from specs to running resources.

`reconciler.py` stores the specs as the desired state and marks the plan stale.
`desired_specs.py` decides which resources of remotes are planned together with the configured
ones; standalone ones are planned apart, a few at a time (`standalone_nodes.py`).

`plan.py`, a pure function, compares the desired state with the running nodes and with the offers
of the providers. It returns a step for each resource, with a reason: build, change in place,
rebuild, halt, remove or leave alone. `changes.py` decides what a running node needs. `edges.py`
resolves dependencies, computes the topological order and finds cycles.

`executor.py` executes the plan. Each node has a task that waits only for the node's own
dependencies. `lifecycle_calls.py` awaits constructors, reconfigurations and closes, with
deadlines.

Every other event, such as a crashed provider, a retry that is due or a lost resource, only marks
the plan stale. There is no other way to change the graph. `cogwork config diff` plans on a
simulated graph (`dry_run.py`).
"""
