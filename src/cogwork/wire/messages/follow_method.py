"""The methods with which a cloud notifies a machine of changes, and sends it the access list.

`Follow` takes a google.protobuf.Struct with the ID of a part and the time of the machine in seconds
since 1970 (`id`, `time`), and returns a stream of Structs:

- `config` and `access` are the revisions of the configuration and of the access list. The current
  revisions are sent immediately, and again after each change. If the cloud sends the same
  revisions again, the machine should check everything else, such as whether to restart.
- `ended` lists the IDs of principals whose access has just ended or changed.
- `secret` is a new secret of the part. It is sent only to the server that uses the old secret.
- `conflict` is an error message, sent if two servers use the credentials of the part.
- An empty message is a heartbeat.

`GetAccess` takes the ID of a part and returns its access list as JSON (both StringValue).
"""

from __future__ import annotations

from typing import Final

FOLLOW_SERVICE: Final = "cogwork.cloud.v1.FollowService"
FOLLOW: Final = f"/{FOLLOW_SERVICE}/Follow"
GET_ACCESS: Final = f"/{FOLLOW_SERVICE}/GetAccess"
FOLLOW_HEARTBEAT: Final = 20.0
"""Seconds between two heartbeats."""

ACCESS_METADATA: Final = ("cogwork-access", "list")
"""Metadata that a machine sends if it checks clients against an access list. For all other
machines, the cloud includes the API keys in the configuration."""

INSTANCE_METADATA: Final = "cogwork-instance"
HOST_METADATA: Final = "cogwork-host"
"""Metadata that a machine sends with every call: a random number, chosen at its start, and the name
of its computer. The cloud uses them to detect two computers with the same credentials."""
