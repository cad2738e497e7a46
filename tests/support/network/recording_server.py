"""A server that writes what its data channels receive to a file: each frame in a line of its own,
with a number for its channel.

Run as `COGWORK_RECORDING=FILE python -m tests.support.network.recording_server ...`.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path

from cogwork.helpers.message_stream import MessageSplitter
from cogwork.server.main import run
from cogwork.wire.transports.data_channel import DataChannel


def record(file: Path) -> None:
    channels: list[DataChannel] = []
    splitters: list[MessageSplitter] = []
    receive = DataChannel.data_received

    def data_received(channel: DataChannel, data: bytes) -> None:
        if channel not in channels:
            channels.append(channel)
            splitters.append(MessageSplitter())
        number = channels.index(channel)
        with file.open("a") as lines:
            for frame in splitters[number].feed(data):
                lines.write(f"{number} {base64.b64encode(frame).decode()}\n")
        receive(channel, data)

    DataChannel.data_received = data_received  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    record(Path(os.environ["COGWORK_RECORDING"]))
    run()
