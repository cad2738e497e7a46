"""`cogwork module restart` as a person runs it, against the real executable."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.modules import make
from tests.support.machine.commands import run_command
from tests.support.machine.running import Server, run_server


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Server]:
    modules = [{"name": "stub", "executable_path": str(make.stub(tmp_path))}]
    async with run_server({"modules": modules}, tmp_path) as server:
        await server.out.wait_for("modmanager.stub.*ready, with")
        yield server


def address_arguments(server: Server) -> tuple[str, str]:
    return "--address", f"localhost:{server.port}"


async def test_restart_waits_until_the_module_is_ready(machine: Server) -> None:
    so_far = len(machine.out.lines)
    code, out, err = await run_command("module", "restart", "stub", *address_arguments(machine))
    assert (code, err) == (0, "")
    assert re.fullmatch(r"stub restarted in \d+\.\ds\n", out)
    await machine.out.wait_for("modmanager.stub.*ready, with", since=so_far)

    code, out, err = await run_command(
        "module", "restart", "stub", "--json", *address_arguments(machine)
    )
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told.pop("seconds") < 10
    assert told == {"module": "stub", "ready": True, "error": ""}


async def test_failed_restart_is_reported_with_the_reason(machine: Server, tmp_path: Path) -> None:
    program = make.stub(tmp_path)
    program.write_text("#!/bin/sh\necho 'no such device' >&2\nexit 3\n")
    code, out, err = await run_command("module", "restart", "stub", *address_arguments(machine))
    assert (code, out) == (1, "")
    assert err.startswith("stub is not ready after its restart: exited with code 3")
    assert "no such device" in err


async def test_unknown_module_is_refused(machine: Server) -> None:
    code, out, err = await run_command("module", "restart", "stubb", *address_arguments(machine))
    assert (code, out) == (2, "")
    assert err == "module not found with id=, name=stubb; configured modules: stub\n"
