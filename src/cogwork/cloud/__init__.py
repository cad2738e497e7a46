"""The fleet cloud: organizations, machines, their configurations and their logs.

`main.py` is `cogwork-cloud`; its commands are in `commands`, and `serve.py` serves one
directory.

1. `identity/login.py` identifies the actor of a call: an API key, or a part of a machine by its
   own secret. `identity/access.py` decides which role the actor has on a resource. When an actor
   loses access, `identity/open_calls.py` ends the calls of the actor.
2. An operation (`operations/operation.py`) is a function of a transaction, a call and a request
   that returns the reply. Operations are in `fleet` and `registry`, in files named after the
   objects that they change. `fleet/app_service.py` serves operations, and
   `operations/operation_runner.py` publishes their effects. Slow checks run before the
   transaction: an edit of a fragment is checked on the machines that use the fragment
   (`fleet/fragments/fragment_impact.py`).
3. `machine/robot_service.py` serves the calls of machines. `machine/machine_config.py` builds a
   machine's configuration: `configuration/fragment_merge.py` (pure) merges its fragments,
   and `registry/resolution.py` chooses the versions of modules and models for the machine's
   platform. Operators see configurations through `configuration/config_mask.py`.
4. `machine/follow_service.py` tells machines what changed, and gives them their access lists
   (`machine/part_access_list.py`). `identity/presence.py` knows which machines are online.
   `signaling` connects clients with machines behind routers: `signaling/machine_hosts.py` finds
   the part with a host name.
5. `updates` tells machines which versions of the server and the agent they should have.
   `updates/rollout.py` (pure) decides which parts a rollout reaches, and when the rollout
   widens or pauses.
6. `machine/log_intake.py` stores the logs of machines, within the quotas of
   `machine/log_quota.py` and the free disk space.
7. `control_plane/health.py` collects the problems that the stores and the periodic tasks report.
   `storage/disk_space.py` keeps a reserve of the disk for records.
8. `storage` has the interfaces of the stores, and their first engines: SQLite, queues inside
   the process, and a folder. `storage/select.py` reads rows as typed values.

The directory is created by `commands/create_cloud.py`, and opened under a lock by
`control_plane/open_cloud.py`, which refuses an incomplete one. The keys of the cloud itself are
rows (`keys/cloud_key.py`) that a root key seals (`keys/root_key.py`). Commands change these
rows from another process, and `control_plane/key_watcher.py` loads the changes.
"""
