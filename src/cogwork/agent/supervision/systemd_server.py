"""The server as a systemd service, which the agent starts and stops."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Final

from cogwork.core.process_end import wait_for_end
from cogwork.systemd.systemctl import Systemctl, SystemctlFailed

SERVICE: Final = "cogwork-server.service"
UNITS: Final = Path("/etc/systemd/system")
SERVING_FILE: Final = Path("/run/cogwork/serving.json")
"""The file to which the server writes its address, in a directory that the unit creates for the
server."""
_PROCESS: Final = "MainPID"
_START_TIMEOUT: Final = 10.0
_POLL: Final = 0.05


class SystemdServer:
    """The systemd service of the server. The agent restarts the server; systemd does not."""

    def __init__(self, systemctl: Systemctl) -> None:
        """Find the running server, if any. Raise SystemctlFailed."""
        self._systemctl = systemctl
        self._process_id = self._find_process()

    @property
    def process_id(self) -> int | None:
        if self._process_id is not None and not _is_alive(self._process_id):
            return None
        return self._process_id

    async def start(self) -> None:
        if self.process_id is not None:
            return
        try:
            # `systemctl start` would wait until the server is ready, but the health gate does that.
            await asyncio.to_thread(self._systemctl.run, "start", "--no-block", SERVICE)
            self._process_id = await asyncio.to_thread(self._wait_for_process)
        except SystemctlFailed as error:
            raise OSError(str(error)) from None

    async def stop(self, timeout: float | None = None) -> None:
        process_id = self.process_id
        if timeout is not None and process_id is not None:
            await asyncio.to_thread(self._systemctl.run, "stop", "--no-block", SERVICE)
            try:
                async with asyncio.timeout(timeout):
                    await wait_for_end(process_id)
            except TimeoutError:
                kill = ("kill", "--signal=KILL", SERVICE)
                await asyncio.to_thread(self._systemctl.run, *kill)
        # Unlike a kill, `systemctl stop` waits until all processes of the service have ended.
        await asyncio.to_thread(self._systemctl.run, "stop", SERVICE)
        self._process_id = None

    async def wait(self) -> str:
        if self._process_id is not None:
            await wait_for_end(self._process_id)
        return await asyncio.to_thread(self._describe_end)

    def _find_process(self) -> int | None:
        return int(self._systemctl.show(SERVICE, _PROCESS).get(_PROCESS, "0")) or None

    def _wait_for_process(self) -> int | None:
        """Wait until systemd has started the process. Return its ID; None if it failed."""
        deadline = time.monotonic() + _START_TIMEOUT
        while time.monotonic() < deadline:
            if (process_id := self._find_process()) is not None:
                return process_id
            if self._systemctl.show(SERVICE, "ActiveState")["ActiveState"] == "failed":
                return None
            time.sleep(_POLL)
        return None

    def _describe_end(self) -> str:
        try:
            found = self._systemctl.show(SERVICE, "Result", "ExecMainCode", "ExecMainStatus")
        except SystemctlFailed as error:
            return f"it ended; {error}"
        status = found.get("ExecMainStatus", "?")
        match found.get("ExecMainCode"):
            case "1":
                how = f"it ended with exit code {status}"
            case "2" | "3":
                how = f"it was killed by {signal.Signals(int(status)).name}"
            case _:
                how = "it ended"
        result = found.get("Result", "success")
        reason = f" ({result})" if result not in ("success", "exit-code", "signal") else ""
        return f"{how}{reason}; see: journalctl -u cogwork-server"


def _is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
