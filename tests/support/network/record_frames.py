"""Records what real peers send over a data channel.

Run as `python -m tests.support.network.record_frames`.

The SDK's own peer, in Rust, and npm's SDK in a browser make the same calls. Neither ever resets a
call. The frames are written to a file, which tests/unit/wire/test_recorded_frames.py plays back.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import tempfile
from pathlib import Path

from tests.interop.test_typescript_sdk import fake, run_node
from tests.support.machine.running import Server, run_server
from tests.support.paths import TESTS
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import Request

FILE = TESTS / "unit" / "wire" / "recorded_frames.json"
MACHINE = {
    "components": [
        fake("sensor", "component:sensor"),
        fake("microphone", "component:audio_in"),
        fake("speaker", "component:audio_out"),
    ]
}
METHODS = ("GetReadings", "GetAudio", "Play", "GetOperations", "Tunnel")


async def call_with_rust(server: Server) -> None:
    client = str(TESTS / "interop" / "frames_client.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, client, f"127.0.0.1:{server.port}", stderr=asyncio.subprocess.DEVNULL
    )
    assert await asyncio.wait_for(process.wait(), 60) == 0


async def call_with_typescript(server: Server) -> None:
    await run_node("frames.mjs", server.url)


def read_calls(recording: Path) -> list[dict[str, object]]:
    """Return the calls that were made, in the order in which they began."""
    frames: dict[tuple[int, int], list[str]] = {}
    methods: dict[tuple[int, int], str] = {}
    for line in recording.read_text().splitlines():
        channel, _, encoded = line.partition(" ")
        request = Request.FromString(base64.b64decode(encoded))
        call = (int(channel), request.stream.id)
        if request.WhichOneof("type") == "headers":
            methods[call] = request.headers.method
        frames.setdefault(call, []).append(encoded)
    return [
        {"method": method, "frames": frames[call]}
        for call, method in methods.items()
        if method.endswith(METHODS)
    ]


async def main() -> None:
    found = {}
    for peer, make_calls in (("rust", call_with_rust), ("typescript", call_with_typescript)):
        with tempfile.TemporaryDirectory() as directory:
            recording = Path(directory, "recording")
            async with run_server(
                MACHINE,
                Path(directory),
                environment={"COGWORK_RECORDING": str(recording)},
                program=(sys.executable, "-m", "tests.support.network.recording_server"),
            ) as server:
                await server.out.wait_for("applied in")
                await make_calls(server)
            found[peer] = read_calls(recording)
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    for peer, calls in found.items():
        for each in calls:
            print(peer, each["method"])


if __name__ == "__main__":
    asyncio.run(main())
