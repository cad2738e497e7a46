"""A shell on the machine, used by a client that has only the public messages."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from grpclib.client import Channel
from tests.support.machine.running import run_server, save, start_server, with_free_port

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.service.shell.v1.shell_grpc import ShellServiceStub  # noqa: E402
from viam.gen.service.shell.v1.shell_pb2 import ShellRequest  # noqa: E402

CONFIG = {
    "services": [{"name": "shell", "api": "rdk:service:shell", "attributes": {"shell": "/bin/sh"}}]
}


async def test_command_is_run_in_a_shell(tmp_path: Path) -> None:
    async with run_server(CONFIG, tmp_path) as server:
        await server.wait_for_status(state="running")
        channel = Channel("localhost", server.port)
        said = ""
        async with asyncio.timeout(60), ShellServiceStub(channel).Shell.open() as stream:
            await stream.send_message(ShellRequest(name="shell", data_in="echo $((6*7))\n"))
            while "42" not in said:
                reply = await stream.recv_message()
                assert reply is not None, said
                said += reply.data_out
            await stream.send_message(ShellRequest(name="shell", data_in="exit\n"))
            while (reply := await stream.recv_message()) is not None and not reply.eof:
                pass
            await stream.end()
        channel.close()


async def test_shell_is_unhealthy_in_an_untrusted_environment(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    save(file, with_free_port(CONFIG))
    home = {"COGWORK_HOME": str(tmp_path / "home")}
    async with start_server(["-untrusted-env", "-config", str(file)], home) as server:
        await server.wait_until_serving()
        (shell,) = (await server.wait_for_status(state="running"))["resources"]
        assert shell["state"] == "unhealthy"
        assert "untrusted" in shell["reason"]
        server.signal(signal.SIGTERM)
        assert await server.exit_code() == 0
