"""The method by which a cloud tells a machine that its configuration has changed.

`Watch` takes the ID of a part (google.protobuf.StringValue) and returns a stream of revisions of
its configuration (StringValue): the current one at once, and another after each change. The same
revision again is a hint that the machine must ask for something else, such as whether to restart.
An empty one is a heartbeat.
"""

from __future__ import annotations

from typing import Final

WATCH_SERVICE: Final = "cogwork.cloud.v1.WatchService"
WATCH: Final = f"/{WATCH_SERVICE}/Watch"
WATCH_HEARTBEAT: Final = 20.0
"""Seconds between two heartbeats."""
