r"""Modules in a running machine: added, changed, removed and restarted, and their reports.

They are written with the unmodified SDK.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import tarfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib import GRPCError
from grpclib.const import Status
from tests.interop import counting_module
from tests.modules import make
from tests.support.machine.modular import (
    READY,
    UNHEALTHY,
    RunningMachine,
    board,
    component,
    module,
    motor,
    poll,
    run_machine,
    sensor,
    service,
)
from tests.support.machine.running import DEADLINE
from tests.support.machine.served import refused

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.generic.client import GenericClient  # noqa: E402
from viam.gen.common.v1.common_pb2 import LogEntry  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import (  # noqa: E402
    GetModelsFromModulesRequest,
    LogRequest,
    ResourceNamesRequest,
)

on_shared_loop = pytest.mark.asyncio(loop_scope="module")


def counted(name: str, **attributes: Any) -> dict[str, Any]:
    return component(name, "generic", "acme:test:counted", **attributes)


async def read_calls(there: RunningMachine, name: str) -> Any:
    """Return the calls to its module since the last time, and its description."""
    return await GenericClient(name, there.channel).do_command({})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningMachine]:
    """A machine whose configuration tests change to one with modules of their own."""
    async with run_machine({}, tmp_path_factory.mktemp("machine")) as running:
        await running.server.out.wait_for("applied in")
        # Open its connection now: it outlives a test.
        await running.modules()
        yield running


async def test_resources_are_added_changed_and_removed(tmp_path: Path) -> None:
    counting = module("counting", make.executable(tmp_path, Path(counting_module.__file__)))
    first, others = counted("first", size=1), [counted("second"), counted("third")]
    async with run_machine({"components": [first, board()]}, tmp_path) as there:
        assert "acme:test:counted" in await there.wait_until_unhealthy("first", "unknown model")

        config: dict[str, Any] = {"modules": [counting], "components": [first, board()]}
        there.save(config)
        await there.wait_until_ready("first")
        assert (await read_calls(there, "first"))["calls"] == ["add first"]

        config["components"] = [first, *others, board()]
        await there.apply(config)
        await there.wait_until_ready()
        told = await read_calls(there, "second")
        assert sorted(told["calls"]) == ["add second", "add third"]

        config["components"] = [counted("first", size=2), *others, board()]
        await there.apply(config)
        told = await read_calls(there, "first")
        assert told["calls"] == ["reconfigure first"]
        assert told["attributes"] == {"size": 2}

        await check_dependencies_from_attributes(there, config)
        await check_changed_dependency(there, config)
        await check_failing_change(there, config)

        config["components"] = [config["components"][1], board()]
        await read_calls(there, "second")
        await there.apply(config)
        await there.wait_until_gone("third")
        assert sorted((await read_calls(there, "second"))["calls"]) == [
            "remove first",
            "remove third",
        ]
        with refused() as told:
            await read_calls(there, "first")
        assert told.status is Status.NOT_FOUND


@on_shared_loop
async def test_calls_wait_while_their_module_restarts(
    there: RunningMachine, tmp_path: Path
) -> None:
    counting = module("counting", make.executable(tmp_path, Path(counting_module.__file__)))
    config = {"modules": [counting], "components": [counted("first", size=1)]}
    await there.apply(config)
    await there.wait_until_ready("first")
    await there.restart("counting")
    await there.wait_for("first", lambda found: found["state"] == "configuring")
    assert (await read_calls(there, "first"))["calls"] == ["add first"]


async def check_dependencies_from_attributes(there: RunningMachine, config: dict[str, Any]) -> None:
    config["components"][0] = counted("first", needs=["board"])
    await there.apply(config)
    await there.wait_until_ready()
    told = await read_calls(there, "first")
    assert told["dependencies"] == ["board"]
    print(f"it depends on another, and the module was asked to {told['calls']}")
    assert told["calls"] in (["reconfigure first"], ["remove first", "add first"])
    config["components"][0] = counted("first", needs=["board", "second"])
    await there.apply(config)
    await there.wait_until_ready()
    told = await read_calls(there, "first")
    assert told["dependencies"] == ["board", "second"]
    assert (await there.resources())["first"]["depends_on"] == [
        "rdk:component:board/board",
        "rdk:component:generic/second",
    ]
    config["components"][0] = counted("first", needs=["nobody"])
    await there.apply(config)
    assert "nobody" in await there.wait_until_unhealthy("first")
    config["components"][0] = counted("first", needs=["second"])
    await there.apply(config)
    await there.wait_until_ready("first")
    assert (await read_calls(there, "first"))["dependencies"] == ["second"]


async def check_changed_dependency(there: RunningMachine, config: dict[str, Any]) -> None:
    """The dependent is rebuilt after it; no other resource is touched."""
    await read_calls(there, "first")
    config["components"][1] = counted("second", size=5)
    await there.apply(config)
    await there.wait_until_ready()
    told = await read_calls(there, "second")
    assert told["attributes"] == {"size": 5}
    print(f"a dependency was changed, and the module was asked to {told['calls']}")
    assert told["calls"][-1] in ("add first", "reconfigure first")
    assert not [call for call in told["calls"] if "third" in call]
    await there.wait_until_ready("first")


async def check_failing_change(there: RunningMachine, config: dict[str, Any]) -> None:
    """The resource is gone, and returns as soon as it can be built."""
    config["components"][2] = counted("third", fails="no such device")
    await there.apply(config)
    assert "no such device" in await there.wait_until_unhealthy("third")
    assert (await read_calls(there, "second"))["attributes"] == {"size": 5}
    config["components"][2] = counted("third")
    await there.apply(config)
    await there.wait_until_ready("third")


async def test_modules_are_added_changed_and_removed(tmp_path: Path) -> None:
    motors = module("motors", make.sdk_module(tmp_path, "motor"))
    sensors = module("sensors", make.sdk_module(tmp_path, "sensor"))
    resources = [
        motor("one"),
        motor("two", needs=["rdk:component:sensor/heat"]),
        motor("three", wants=["heat"]),
        sensor("heat", degrees=20),
    ]
    async with run_machine({"modules": [motors], "components": resources}, tmp_path) as there:
        await there.wait_until_ready("one")
        await there.wait_until_ready("three")
        pid = await there.pid_of("one")
        assert await there.motor("three").get_position() == 0
        assert "acme:test:sensor" in await there.wait_until_unhealthy("heat", "unknown model")
        assert "heat" in await there.wait_until_unhealthy("two")

        config: dict[str, Any] = {"modules": [motors, sensors], "components": resources}
        there.save(config)
        await there.wait_until_ready()
        assert await there.motor("two").get_position() == 20
        # The dependency is optional and is used when it appears.
        await poll(lambda: read_position(there, "three"), lambda found: found == 20)
        assert await there.pid_of("one") == pid

        # Its environment changes: only this module is restarted.
        config["modules"] = [motors, {**sensors, "env": {"ACME": "1"}}]
        since = len(there.server.out.lines)
        there.save(config)
        await there.server.out.wait_for("rdk.modmanager.sensors.*ready, with", since=since)
        await there.wait_until_ready()
        assert await there.pid_of("one") == pid
        assert await there.motor("two").get_position() == 20

        config["modules"] = [motors]
        there.save(config)
        assert "unknown model" in await there.wait_until_unhealthy("heat", "unknown model")
        assert "heat" in await there.wait_until_unhealthy("two", "heat")
        assert await there.pid_of("one") == pid
        assert list(await there.modules()) == ["motors"]

        config["modules"] = [motors, sensors]
        there.save(config)
        await there.wait_until_ready()
        assert await there.pid_of("one") == pid
        assert await there.motor("two").get_position() == 20
        assert "modmanager.sensors" not in "".join(
            line for line in there.server.out.lines if "ERROR" in line
        )


async def read_position(there: RunningMachine, name: str) -> float:
    await there.wait_until_ready(name)
    return float(await there.motor(name).get_position())


@on_shared_loop
async def test_resource_can_switch_between_builtin_and_modular_model(
    there: RunningMachine, tmp_path: Path
) -> None:
    config: dict[str, Any] = {
        "modules": [module("motors", make.sdk_module(tmp_path, "motor"))],
        "components": [component("wheel", "motor", "fake"), motor("follower", needs=["wheel"])],
    }
    await there.apply(config)
    await there.wait_until_ready()
    assert await there.motor("follower").get_position() == 1
    for modular in (True, False, True):
        config["components"][0] = motor("wheel") if modular else component("wheel", "motor", "fake")
        await there.apply(config)
        await there.wait_until_ready()
        model = (await there.resources())["wheel"]["model"]
        assert model == ("acme:test:motor" if modular else "fake")
        await there.motor("wheel").reset_zero_position(-3.0)
        assert await there.motor("follower").get_position() == 4


async def test_model_of_two_modules_is_provided_by_the_first(tmp_path: Path) -> None:
    good = module("good", make.sdk_module(tmp_path, "sensor"))
    other = module("other", make.sdk_module(tmp_path, "bad"), env={"MODE": "others-model"})
    config: dict[str, Any] = {
        "modules": [good, other],
        "components": [sensor("probe", **{"from": "good"})],
    }
    async with run_machine(config, tmp_path) as there:
        await there.wait_for_module("other")
        await there.wait_for_module("good")
        await there.wait_until_ready("probe")
        await there.server.out.wait_for("WARN.*acme:test:sensor.*good", within=60)
        await wait_for_readings(there, {"from": "good"})
        config["modules"] = [other]
        there.save(config)
        await wait_for_readings(there, {"from": "bad"})
        config["modules"] = [good, other]
        there.save(config)
        await wait_for_readings(there, {"from": "good"})


async def wait_for_readings(there: RunningMachine, readings: dict[str, Any]) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            await there.wait_until_ready("probe")
            try:
                if await there.sensor("probe").get_readings() == readings:
                    return
            except GRPCError as error:
                # Between the two modules, no module provides it.
                if error.status is not Status.UNAVAILABLE:
                    raise


async def test_module_archive_is_extracted_and_set_up_once_per_version(tmp_path: Path) -> None:
    """A new version of the archive is extracted and set up again."""
    archive = tmp_path / "probe.tar.gz"
    config = {
        "modules": [
            module("probe", pack_module(archive, make.sdk_module(tmp_path, "sensor"), "one"))
        ],
        "components": [sensor("probe", **{"from": "a file"})],
    }
    async with run_machine(config, tmp_path) as there:
        await wait_for_readings(there, {"from": "a file"})
        await there.server.out.wait_for("first run of probe: setting up one")
        await there.server.out.wait_for(r"StdOut.*version one runs in .*/modules/probe/\w+$")
        so_far = len(there.server.out.lines)
        await there.restart("probe")
        await there.server.out.wait_for("StdOut.*version one", since=so_far)
        assert "setting up" not in "".join(there.server.out.lines[so_far:])

        pack_module(archive, make.sdk_module(tmp_path, "sensor"), "two")
        await there.restart("probe")
        await there.server.out.wait_for("first run of probe: setting up two", since=so_far)
        await there.server.out.wait_for("StdOut.*version two", since=so_far)
        await wait_for_readings(there, {"from": "a file"})


async def test_development_build_is_copied_run_and_replaced(tmp_path: Path) -> None:
    """As `module reload-local` of the existing command line does it."""
    first, second = (
        pack_module(tmp_path / f"{each}.tar.gz", make.sdk_module(tmp_path, "sensor"), each)
        for each in ("one", "two")
    )
    config = {
        "modules": [{"name": "probe", "type": "registry", "module_id": "acme:probe"}],
        "components": [sensor("probe", **{"from": "a file"})],
        "services": [{"name": "shell", "api": "rdk:service:shell"}],
    }
    async with run_machine(config, tmp_path) as there:
        _, told = await there.cli(
            "call", "shell", "DoCommand", '{"command": {"command": "get_viam_home"}}'
        )
        target = f"{json.loads(told)['result']['viam_home']}/packages-local/probe.tar.gz"
        assert (await there.cli("copy", str(first), f"machine:{target}"))[0] == 0
        config["modules"][0] |= {"reload_enabled": True, "reload_path": target}
        there.save(config)
        await wait_for_readings(there, {"from": "a file"})
        await there.server.out.wait_for("StdOut.*version one")
        assert (await there.cli("copy", str(second), f"machine:{target}"))[0] == 0
        await there.restart(module_id="acme:probe")
        await there.server.out.wait_for("StdOut.*version two")


def pack_module(archive: Path, program: Path, version: str) -> Path:
    files = {
        "meta.json": json.dumps({"entrypoint": "bin/run.sh", "first_run": "setup.sh"}),
        "setup.sh": f"#!/bin/sh\necho setting up {version}\n",
        "bin/run.sh": f'#!/bin/sh\necho version {version} runs in $PWD\nexec {program} "$@"\n',
    }
    folder = archive.with_name(f"files of {version}")
    with tarfile.open(archive, "w:gz") as made:
        for name, text in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755)
            made.add(file, name)
    return archive


@on_shared_loop
async def test_waiting_resource_does_not_restart_its_module(
    there: RunningMachine, tmp_path: Path
) -> None:
    motors = module("motors", make.sdk_module(tmp_path, "motor"), log_level="warn")
    config: dict[str, Any] = {
        "modules": [motors],
        "components": [motor("wheel"), motor("waiting", needs=["nobody"])],
    }
    await there.apply(config)
    await there.wait_until_ready("wheel")
    await there.wait_until_unhealthy("waiting", "nobody")
    pid = await there.pid_of("wheel")
    config["components"].append(board())
    await there.apply(config)
    await there.wait_until_ready("wheel", "board")
    assert await there.pid_of("wheel") == pid


async def test_module_status_restart_and_history(tmp_path: Path) -> None:
    config = {
        "modules": [
            module("motors", make.sdk_module(tmp_path, "motor"), module_id="acme:motors"),
            module("echoes", make.sdk_module(tmp_path, "echo")),
        ],
        "components": [motor("wheel")],
        "services": [service("echo", "acme:service:echo", "acme:test:echo")],
    }
    async with run_machine(config, tmp_path) as there:
        await there.wait_until_ready()
        for status in (await there.modules()).values():
            assert (status.state, status.error, status.consecutive_failures) == (READY, "", 0)
            assert abs(status.last_updated.seconds - datetime.now(UTC).timestamp()) < 60
        models = await there.robot.GetModelsFromModules(GetModelsFromModulesRequest())
        assert [
            (each.module_name, each.api, each.model, each.from_local_module)
            for each in models.models
        ] == [
            ("motors", "rdk:component:motor", "acme:test:motor", True),
            ("echoes", "acme:service:echo", "acme:test:echo", True),
        ]
        await check_restarts(there)
        await check_crash_is_reported(there)
        await check_commands_show_modules(there)
        await check_custom_api_by_reflection(there)


async def check_restarts(there: RunningMachine) -> None:
    """Each start has its own socket, which is removed with it."""
    pid = await there.pid_of("wheel")
    first = Path((await there.command("wheel", "about"))["arguments"][0])
    for asked in ({"name": "motors"}, {"module_id": "acme:motors"}):
        await there.restart(**asked)
        pid = await wait_for_new_pid(there, pid)
    last = Path((await there.command("wheel", "about"))["arguments"][0])
    assert last != first
    assert [*first.parent.glob("motors*.sock")] == [last]
    # A requested restart is not an error.
    assert not [line for line in there.server.out.lines if "\tERROR\t" in line]
    for asked in ({"name": "moters"}, {"module_id": "acme:moters"}):
        with refused() as told:
            await there.restart(**asked)
        assert told.status is Status.NOT_FOUND
        assert "module not found with id=" in told.words
        assert "motors" in told.words


async def wait_for_new_pid(there: RunningMachine, pid: int) -> int:
    found = await poll(lambda: pid_or_none(there), lambda now: now not in (pid, None))
    assert found is not None
    return found


async def pid_or_none(there: RunningMachine) -> int | None:
    try:
        return await there.pid_of("wheel")
    except GRPCError:
        return None


async def check_crash_is_reported(there: RunningMachine) -> None:
    with refused() as told:
        await there.command("wheel", "exit", 9)
    assert told.status is Status.UNAVAILABLE
    await poll(lambda: pid_or_none(there), lambda pid: pid is not None)


async def check_commands_show_modules(there: RunningMachine) -> None:
    code, said = await there.cli("status", "--history", "--json")
    events = [each for each in json.loads(said) if each["event"] == "module"]
    assert code == 0
    mine = [each for each in events if each["module"] == "motors"]
    assert [each["state"] for each in mine].count("started") == 4
    failed = [each for each in mine if each["state"] == "failed"]
    assert len(failed) == 1
    assert "code 9" in failed[0]["reason"]
    code, said = await there.cli("status", "--history")
    assert "module motors" in said
    code, said = await there.cli("status")
    assert code == 0
    assert "acme:test:echo" in said


async def check_custom_api_by_reflection(there: RunningMachine) -> None:
    names = await there.robot.ResourceNames(ResourceNamesRequest())
    assert ("acme", "echo") in [(each.namespace, each.subtype) for each in names.resources]
    code, said = await there.cli("call", "echo", "Unary", '{"text": "hello"}')
    assert code == 0, said
    assert json.loads(said)["text"] == "hello"
    code, said = await there.cli("call", "echo", "server_stream", '{"times": 3}')
    assert code == 0, said
    assert said.count("number") == 3


@on_shared_loop
async def test_module_that_cannot_be_started_has_a_reason_and_is_not_retried(
    there: RunningMachine,
) -> None:
    config = {
        "modules": [
            {"name": "bare", "executable_path": "run.sh"},
            {"name": "store", "type": "registry", "module_id": "acme:store"},
            {"name": "top", "executable_path": "/no-such-module"},
        ]
    }
    since = len(there.server.out.lines)
    await there.apply(config)
    views = await poll(there.view, lambda view: all(each["reason"] for each in view["modules"]))
    bare, store, top = [each["reason"] for each in views["modules"]]
    assert bare == ('cannot be started: its "executable_path" is "run.sh"; write the absolute path')
    assert store.startswith('cannot be started: it has no "executable_path"')
    assert top.startswith("could not be started: /no-such-module does not exist")
    assert "; restarting in " in top
    said = "\n".join(there.server.out.lines[since:])
    assert "Traceback" not in said
    assert "internal error" not in said


@on_shared_loop
async def test_status_shows_what_an_installation_is_doing(
    there: RunningMachine, tmp_path: Path
) -> None:
    program = make.stub(tmp_path)
    may_end = tmp_path / "may-end"
    setup = program.with_name("setup.sh")
    setup.write_text(
        f"#!/bin/sh\necho downloading 12%\nwhile [ ! -e {may_end} ]; do sleep 0.05; done\n"
    )
    setup.chmod(0o700)
    program.with_name("meta.json").write_text('{"first_run": "setup.sh"}')
    there.save({"modules": [module("stub", program)]})
    await poll(there.view, lambda view: "downloading" in str(view["modules"]))
    (installing,) = (await there.view())["modules"]
    assert installing["state"] == "starting"
    assert installing["reason"] == "first run of stub: downloading 12%"
    may_end.touch()
    await poll(there.view, lambda view: view["modules"][0]["state"] == "ready")
    assert (await there.view())["modules"][0]["reason"] is None


@on_shared_loop
async def test_status_page_and_command_show_a_broken_module(
    there: RunningMachine, tmp_path: Path
) -> None:
    config = {"modules": [module("broken", tmp_path / "nowhere")], "components": [motor("wheel")]}
    await there.apply(config)
    reason = await there.wait_until_unhealthy("wheel", "nowhere")
    assert 'module "broken"' in reason
    view = await there.view()
    assert [each["name"] for each in view["modules"]] == ["broken"]
    assert "nowhere" in view["modules"][0]["reason"]
    code, said = await there.cli("status")
    assert code == 1
    assert any("module" in line and "broken" in line for line in said.splitlines())


@on_shared_loop
async def test_status_shows_tabs_and_lines_of_a_module(
    there: RunningMachine, tmp_path: Path
) -> None:
    script = tmp_path / "crash"
    script.write_text(
        "#!/bin/sh\nprintf 'Traceback:\\n\\tin line 3\\nout of ideas\\n' >&2\nexit 3\n"
    )
    script.chmod(0o755)
    config = {"modules": [module("crash", script)], "components": [motor("wheel")]}
    await there.apply(config)
    await there.wait_for_module("crash", UNHEALTHY)
    said = ""
    async with asyncio.timeout(60):
        # While the module is being started again, the status has only its last line.
        while "\n    in line 3\n    out of ideas\n" not in said:
            code, said = await there.cli("status")
            assert code == 1
            assert "\ufffd" not in said
    assert "\ufffd" not in (await there.cli("graph"))[1]


@on_shared_loop
async def test_reason_of_a_module_has_no_prefix_of_the_sdk(
    there: RunningMachine, tmp_path: Path
) -> None:
    config = {
        "modules": [module("motors", make.sdk_module(tmp_path, "motor"))],
        "components": [motor("wheel", broken="bent\tin\nhalf")],
    }
    await there.apply(config)
    reason = await there.wait_until_unhealthy("wheel", "rejected the configuration")
    assert reason.startswith('its module rejected the configuration: "broken" is bent')
    said = (await there.cli("status"))[1]
    assert '"broken" is bent in\n    half; take it out' in said


@on_shared_loop
async def test_rejected_change_of_a_resource_is_logged_once(
    there: RunningMachine, tmp_path: Path
) -> None:
    motors = module("motors", make.sdk_module(tmp_path, "motor"))
    await there.apply({"modules": [motors], "components": [motor("wheel")]})
    await there.wait_until_ready("wheel")
    since = len(there.server.out.lines)
    await there.apply({"modules": [motors], "components": [motor("wheel", broken="bent")]})
    await there.wait_until_unhealthy("wheel", "rejected the configuration")
    await there.apply({"modules": [motors], "components": [motor("wheel")]})
    await there.wait_until_ready("wheel")
    (line,) = [line for line in there.server.out.lines[since:] if "take it out" in line]
    assert "is unhealthy: its module rejected the configuration: " in line


async def test_module_output_and_logs_reach_the_log(tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "modules": [module("motors", make.sdk_module(tmp_path, "motor"))],
        "components": [motor("wheel")],
        "disable_log_deduplication": True,
    }
    wheel = "rdk.resource_manager.rdk:component:motor/wheel"
    async with run_machine(config, tmp_path) as there:
        await there.wait_until_ready()
        out = there.server.out
        await there.command("wheel", "print", "a line of its own")
        await out.wait_for(r"INFO\trdk\.modmanager\.motors\.StdOut\t.*a line of its own")
        await there.command("wheel", "print_error", "a complaint")
        await out.wait_for(r"ERROR\trdk\.modmanager\.motors\.StdErr\t.*a complaint")
        await there.command("wheel", "print_error", "WARNING: warm")
        await out.wait_for(r"WARN\trdk\.modmanager\.motors\.StdErr\t.*warm")
        await there.command("wheel", "log", "word one")
        for level in ("INFO", "WARN", "ERROR", "CRITICAL"):
            await out.wait_for(rf"{level}\t{wheel}\t.*word one")
        assert not is_logged("DEBUG", "word one", out.lines)

        await check_log_batch(there)
        await check_log_levels(there, config)


async def check_log_batch(there: RunningMachine) -> None:
    """A client cannot log under the name of a resource; its entries are kept under another."""
    now = Timestamp()
    now.GetCurrentTime()
    entries = [
        LogEntry(
            level=level,
            time=now,
            logger_name="rdk:component:motor.wheel",
            message=f"batch {number}",
        )
        for number, level in enumerate(("info", "warn", "WARNING", "Error", "critical", "fatal"))
    ]
    await there.robot.Log(LogRequest(logs=entries))
    for number, level in enumerate(("INFO", "WARN", "WARN", "ERROR", "CRITICAL", "CRITICAL")):
        await there.server.out.wait_for(
            rf"{level}\tclient.rdk:component:motor.wheel\t.*batch {number}"
        )


async def check_log_levels(there: RunningMachine, config: dict[str, Any]) -> None:
    """Precedence: debug, the module's log_level, log_configuration, patterns."""
    quiet, loud = {"log_configuration": {"level": "error"}}, {"log_level": "debug"}
    wheel, motors = config["components"][0], config["modules"][0]

    # A higher level applies at once, without a restart.
    pid = await there.pid_of("wheel")
    config["components"] = [{**wheel, **quiet}]
    await there.apply(config)
    assert await read_audible_levels(there, "quiet") == {"ERROR", "CRITICAL"}
    assert await there.pid_of("wheel") == pid

    # So does a lower one: the module is told.
    config["components"] = [{**wheel, "log_configuration": {"level": "debug"}}]
    await there.apply(config)
    numbers = itertools.count()

    async def logs_debug() -> bool:
        return "DEBUG" in await read_audible_levels(there, f"lower {next(numbers)}.")

    await poll(logs_debug, bool)
    assert await there.pid_of("wheel") == pid
    config["components"] = [{**wheel, **quiet}]
    await there.apply(config)

    # A pattern has lower precedence.
    config["log"] = [{"pattern": "rdk.resource_manager.*", "level": "debug"}]
    await there.apply(config)
    assert await read_audible_levels(there, "pattern") == {"ERROR", "CRITICAL"}

    # The module's own level has precedence, and is lower than the one it was started with.
    config["modules"] = [{**motors, **loud}]
    await apply_and_wait_for_restart(there, config, pid)
    pid = await there.pid_of("wheel")
    assert "--log-level=debug" in (await there.command("wheel", "about"))["arguments"]
    assert await read_audible_levels(there, "loud") == {
        "DEBUG",
        "INFO",
        "WARN",
        "ERROR",
        "CRITICAL",
    }
    await there.server.out.wait_for("log_configuration of rdk:component:motor/wheel has no effect")

    config["modules"] = [{**motors, "log_level": "warn"}]
    await there.apply(config)
    assert await read_audible_levels(there, "warned") == {"WARN", "ERROR", "CRITICAL"}
    assert await there.pid_of("wheel") == pid

    # Without any of them, the pattern applies; with `debug`, nothing else does.
    config["modules"], config["components"] = [motors], [wheel]
    await there.apply(config)
    await there.wait_until_ready("wheel")
    assert "DEBUG" in await read_audible_levels(there, "by pattern")
    config["modules"], config["log"] = [{**motors, "log_level": "error"}], []
    await there.apply(config)
    assert await read_audible_levels(there, "error only") == {"ERROR", "CRITICAL"}
    config["debug"] = True
    await there.apply(config)
    await there.wait_until_ready("wheel")
    assert "DEBUG" in await read_audible_levels(there, "debugged")
    assert "--log-level=debug" in (await there.command("wheel", "about"))["arguments"]


async def test_other_loggers_of_a_module_obey_the_rules(tmp_path: Path) -> None:
    motors = module("motors", make.sdk_module(tmp_path, "motor"))
    config: dict[str, Any] = {
        "modules": [motors],
        "components": [motor("wheel")],
        "disable_log_deduplication": True,
    }
    async with run_machine(config, tmp_path) as there:
        await there.wait_until_ready()
        assert await read_library_levels(there, "default") == {"INFO", "WARN", "ERROR", "CRITICAL"}
        config["modules"] = [{**motors, "log_level": "error"}]
        await there.apply(config)
        assert await read_library_levels(there, "log_level") == {"ERROR", "CRITICAL"}
        config["modules"] = [motors]
        for pattern in ("rdk.modmanager.motors.acme.library", "acme.library", "mo*rs"):
            config["log"] = [{"pattern": pattern, "level": "error"}]
            await there.apply(config)
            assert await read_library_levels(there, pattern) == {"ERROR", "CRITICAL"}
        pid = await there.pid_of("wheel")
        config["log"] = [{"pattern": "rdk.modmanager.motors.acme.library", "level": "debug"}]
        await apply_and_wait_for_restart(there, config, pid)
        assert "DEBUG" in await read_library_levels(there, "one logger")


async def read_library_levels(there: RunningMachine, words: str) -> set[str]:
    """Return the levels at which messages of a library in the module are logged."""
    words = f"library, {words}."
    await poll(lambda: try_log(there, words, "log_as_library"), bool)
    at_end = rf"CRITICAL\trdk\.modmanager\.motors\.acme\.library\t.*{re.escape(words)}"
    await there.server.out.wait_for(at_end)
    lines = [line.split("\t") for line in there.server.out.lines if words in line]
    return {line[1] for line in lines}


async def apply_and_wait_for_restart(
    there: RunningMachine, config: dict[str, Any], pid: int
) -> None:
    there.save(config)
    await wait_for_new_pid(there, pid)


async def try_log(there: RunningMachine, words: str, command: str = "log") -> bool:
    try:
        await there.command("wheel", command, words)
    except GRPCError as error:
        if error.status is not Status.UNAVAILABLE:
            raise
        return False
    return True


async def read_audible_levels(there: RunningMachine, words: str) -> set[str]:
    """Return the levels at which messages of the wheel are logged."""
    out = there.server.out
    # Its process may be restarting.
    await poll(lambda: try_log(there, words), bool)
    await out.wait_for(rf"CRITICAL\trdk\.resource_manager\.\S+wheel\t.*{words}")
    return {
        level
        for level in ("DEBUG", "INFO", "WARN", "ERROR", "CRITICAL")
        if is_logged(level, words, out.lines)
    }


def is_logged(level: str, words: str, lines: list[str]) -> bool:
    return any(
        line.split("\t")[1:2] == [level] and "resource_manager" in line and words in line
        for line in lines
    )
