"""A module runs as another user, which requires root, and a program that this user can reach."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc.aio
import psutil
import pytest
from tests.contract.conftest import grpc_core as grpc_core  # what it keeps for life
from tests.support.go_programs import build, needs_go
from tests.support.machine.running import run_server
from viam.gen.common.v1.common_pb2 import DoCommandRequest
from viam.utils import dict_to_struct

pytestmark = [
    needs_go,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can run it as another user"),
]

OTHER_USER = "nobody"
PUBLIC = Path("/tmp")
DO_COMMAND = "/viam.component.generic.v1.GenericService/DoCommand"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can enter, with the program."""
    with tempfile.TemporaryDirectory(dir=PUBLIC) as folder:
        Path(folder).chmod(0o755)
        shutil.copy(build("module"), folder)
        yield Path(folder)


def make_config(program: Path, **module: Any) -> dict[str, Any]:
    lamp = {"name": "lamp", "api": "rdk:component:generic", "model": "acme:go:lamp"}
    return {
        "modules": [{"name": "lamps", "executable_path": str(program), **module}],
        "components": [lamp],
    }


async def test_it_runs_with_its_own_folders(tmp_path: Path, folder: Path) -> None:
    home = folder / "home"
    home.mkdir()
    shutil.chown(home, OTHER_USER)
    (folder / "meta.json").write_text(json.dumps({"first_run": "setup.sh"}))
    (folder / "setup.sh").write_text("#!/bin/sh\necho set up by $(id -un)\n")
    (folder / "setup.sh").chmod(0o755)
    config = make_config(folder / "module", username=OTHER_USER, env={"HOME": str(home)})
    async with run_server(config, tmp_path) as server:
        await server.out.wait_for(f"first run of lamps: set up by {OTHER_USER}")
        await server.out.wait_for("lamp is ready")
        (module,) = (await server.status())["modules"]
        assert psutil.Process(module["pid"]).username() == OTHER_USER
        (data,) = home.glob(".cogwork/module-data/*/lamps")
        assert data.owner() == OTHER_USER
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            command = DoCommandRequest(name="lamp", command=dict_to_struct({"log": "shines"}))
            call: Any = channel.unary_unary(DO_COMMAND)
            await call(command.SerializeToString(), timeout=30)
        # It logs over the socket of the machine, which is in its folder too.
        await server.out.wait_for("shines")
        sockets = list(PUBLIC.glob(f"cogwork-{server.pid}-*"))
        assert {each.owner() for each in sockets} == {pwd.getpwuid(0).pw_name, OTHER_USER}
        assert {each.stat().st_mode & 0o777 for each in sockets} == {0o700}
    assert not any(each.exists() for each in sockets)


async def test_folder_for_its_data_is_missing(tmp_path: Path, folder: Path) -> None:
    config = make_config(folder / "module", username=OTHER_USER, env={"HOME": str(folder)})
    async with run_server(config, tmp_path) as server:
        line = await server.out.wait_for(r"module lamps could not be started: (.*)")
    assert f'the user "{OTHER_USER}" cannot create the folder for the data' in line[1]
    assert 'set HOME in the "env" of the module' in line[1]


async def test_program_that_changes_its_user_is_told_how(tmp_path: Path, folder: Path) -> None:
    script = folder / "run.sh"
    user = pwd.getpwnam(OTHER_USER).pw_uid
    script.write_text(f'#!/bin/sh\nexec setpriv --reuid={user} {folder}/module "$@"\n')
    script.chmod(0o755)
    async with run_server(make_config(script), tmp_path) as server:
        line = await server.out.wait_for(r"module lamps (.*denied.*)")
    assert 'set "username" of the module instead' in line[1]
