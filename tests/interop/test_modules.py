"""Modules in a machine that runs: added, changed, removed, restarted, and what is said of them.

They are written with the unmodified SDK.
"""

from __future__ import annotations

import asyncio
import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from grpclib import GRPCError
from grpclib.const import Status
from tests.interop import counting_module
from tests.interop.modular import (
    READY,
    There,
    board,
    component,
    machine,
    module,
    motor,
    sensor,
    service,
    until,
)
from tests.modules import make
from tests.running import DEADLINE
from tests.served import refused

from cogwork.resource import sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.generic.client import GenericClient  # noqa: E402
from viam.gen.common.v1.common_pb2 import LogEntry  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import (  # noqa: E402
    GetModelsFromModulesRequest,
    LogRequest,
    ResourceNamesRequest,
)


def counted(name: str, **attributes: Any) -> dict[str, Any]:
    return component(name, "generic", "acme:test:counted", **attributes)


async def count(there: There, name: str) -> Any:
    """What its module was asked since the last time, and about itself."""
    return await GenericClient(name, there.channel).do_command({})


async def test_resources_added_changed_and_removed(tmp_path: Path) -> None:
    counting = module("counting", make.executable(tmp_path, Path(counting_module.__file__)))
    first, others = counted("first", size=1), [counted("second"), counted("third")]
    async with machine({"components": [first, board()]}, tmp_path) as there:
        assert "acme:test:counted" in await there.unhealthy("first", "unknown model")

        config: dict[str, Any] = {"modules": [counting], "components": [first, board()]}
        there.save(config)
        await there.ready("first")
        assert (await count(there, "first"))["calls"] == ["add first"]

        config["components"] = [first, *others, board()]
        await there.apply(config)
        await there.ready()
        told = await count(there, "second")
        assert sorted(told["calls"]) == ["add second", "add third"]

        config["components"] = [counted("first", size=2), *others, board()]
        await there.apply(config)
        told = await count(there, "first")
        assert told["calls"] == ["reconfigure first"]
        assert told["attributes"] == {"size": 2}

        await dependencies_that_come_with_the_attributes(there, config)
        await a_dependency_that_changes(there, config)
        await a_change_that_fails(there, config)

        config["components"] = [config["components"][1], board()]
        await count(there, "second")
        await there.apply(config)
        await there.gone("third")
        assert sorted((await count(there, "second"))["calls"]) == ["remove first", "remove third"]
        with refused() as told:
            await count(there, "first")
        assert told.status is Status.NOT_FOUND


async def dependencies_that_come_with_the_attributes(there: There, config: dict[str, Any]) -> None:
    config["components"][0] = counted("first", needs=["board"])
    await there.apply(config)
    await there.ready()
    told = await count(there, "first")
    assert told["dependencies"] == ["board"]
    print(f"it depends on another, and the module was asked to {told['calls']}")
    assert told["calls"] in (["reconfigure first"], ["remove first", "add first"])
    config["components"][0] = counted("first", needs=["board", "second"])
    await there.apply(config)
    await there.ready()
    told = await count(there, "first")
    assert told["dependencies"] == ["board", "second"]
    assert (await there.resources())["first"]["depends_on"] == [
        "rdk:component:board/board",
        "rdk:component:generic/second",
    ]
    config["components"][0] = counted("first", needs=["nobody"])
    await there.apply(config)
    assert "nobody" in await there.unhealthy("first")
    config["components"][0] = counted("first", needs=["second"])
    await there.apply(config)
    await there.ready("first")
    assert (await count(there, "first"))["dependencies"] == ["second"]


async def a_dependency_that_changes(there: There, config: dict[str, Any]) -> None:
    """Who depends on it is made anew after it; nobody else is touched."""
    await count(there, "first")
    config["components"][1] = counted("second", size=5)
    await there.apply(config)
    await there.ready()
    told = await count(there, "second")
    assert told["attributes"] == {"size": 5}
    print(f"a dependency was changed, and the module was asked to {told['calls']}")
    assert told["calls"][-1] in ("add first", "reconfigure first")
    assert not [call for call in told["calls"] if "third" in call]
    await there.ready("first")


async def a_change_that_fails(there: There, config: dict[str, Any]) -> None:
    """What could not be changed is gone, and is there again as soon as it can be built."""
    config["components"][2] = counted("third", fails="no such device")
    await there.apply(config)
    assert "no such device" in await there.unhealthy("third")
    assert (await count(there, "second"))["attributes"] == {"size": 5}
    config["components"][2] = counted("third")
    await there.apply(config)
    await there.ready("third")


async def test_modules_added_changed_and_removed(tmp_path: Path) -> None:
    motors = module("motors", make.sdk_module(tmp_path, "motor"))
    sensors = module("sensors", make.sdk_module(tmp_path, "sensor"))
    resources = [
        motor("one"),
        motor("two", needs=["rdk:component:sensor/heat"]),
        motor("three", wants=["heat"]),
        sensor("heat", degrees=20),
    ]
    async with machine({"modules": [motors], "components": resources}, tmp_path) as there:
        await there.ready("one")
        await there.ready("three")
        pid = await there.pid_of("one")
        assert await there.motor("three").get_position() == 0
        assert "acme:test:sensor" in await there.unhealthy("heat", "unknown model")
        assert "heat" in await there.unhealthy("two")

        config: dict[str, Any] = {"modules": [motors, sensors], "components": resources}
        there.save(config)
        await there.ready()
        assert await there.motor("two").get_position() == 20
        # It can do without, and takes it when it comes.
        await until(lambda: position(there, "three"), lambda found: found == 20)
        assert await there.pid_of("one") == pid

        # Its environment is another: it alone is started again.
        config["modules"] = [motors, {**sensors, "env": {"ACME": "1"}}]
        since = len(there.server.out.lines)
        there.save(config)
        await there.server.out.says("rdk.modmanager.sensors.*ready, with", since=since)
        await there.ready()
        assert await there.pid_of("one") == pid
        assert await there.motor("two").get_position() == 20

        config["modules"] = [motors]
        there.save(config)
        assert "unknown model" in await there.unhealthy("heat", "unknown model")
        assert "heat" in await there.unhealthy("two", "heat")
        assert await there.pid_of("one") == pid
        assert list(await there.modules()) == ["motors"]

        config["modules"] = [motors, sensors]
        there.save(config)
        await there.ready()
        assert await there.pid_of("one") == pid
        assert await there.motor("two").get_position() == 20
        assert "modmanager.sensors" not in "".join(
            line for line in there.server.out.lines if "ERROR" in line
        )


async def position(there: There, name: str) -> float:
    await there.ready(name)
    return float(await there.motor(name).get_position())


async def test_a_resource_changes_who_makes_it(tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "modules": [module("motors", make.sdk_module(tmp_path, "motor"))],
        "components": [component("wheel", "motor", "fake"), motor("follower", needs=["wheel"])],
    }
    async with machine(config, tmp_path) as there:
        await there.ready()
        assert await there.motor("follower").get_position() == 1
        for modular in (True, False, True):
            config["components"][0] = (
                motor("wheel") if modular else component("wheel", "motor", "fake")
            )
            await there.apply(config)
            await there.ready()
            model = (await there.resources())["wheel"]["model"]
            assert model == ("acme:test:motor" if modular else "fake")
            await there.motor("wheel").reset_zero_position(-3.0)
            assert await there.motor("follower").get_position() == 4


async def test_two_modules_bring_the_same_model(tmp_path: Path) -> None:
    good = module("good", make.sdk_module(tmp_path, "sensor"))
    other = module("other", make.sdk_module(tmp_path, "bad"), env={"MODE": "others-model"})
    config: dict[str, Any] = {
        "modules": [good, other],
        "components": [sensor("probe", **{"from": "good"})],
    }
    async with machine(config, tmp_path) as there:
        await there.module_is("other")
        await there.module_is("good")
        await there.ready("probe")
        await there.server.out.says("WARN.*acme:test:sensor.*good", within=5)
        await until_reads(there, {"from": "good"})
        config["modules"] = [other]
        there.save(config)
        await until_reads(there, {"from": "bad"})
        config["modules"] = [good, other]
        there.save(config)
        await until_reads(there, {"from": "good"})


async def until_reads(there: There, readings: dict[str, Any]) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            await there.ready("probe")
            try:
                if await there.sensor("probe").get_readings() == readings:
                    return
            except GRPCError as error:
                # Between two modules it is nobody's.
                if error.status is not Status.UNAVAILABLE:
                    raise


async def test_a_module_in_one_file(tmp_path: Path) -> None:
    """Unpacked and set up once; and again, once there is another version of it."""
    archive = tmp_path / "probe.tar.gz"
    config = {
        "modules": [module("probe", packed(archive, make.sdk_module(tmp_path, "sensor"), "one"))],
        "components": [sensor("probe", **{"from": "a file"})],
    }
    async with machine(config, tmp_path) as there:
        await until_reads(there, {"from": "a file"})
        await there.server.out.says("first run of probe: setting up one")
        await there.server.out.says(r"StdOut.*version one runs in .*/modules/probe/\w+$")
        so_far = len(there.server.out.lines)
        await there.restart("probe")
        await there.server.out.says("StdOut.*version one", since=so_far)
        assert "setting up" not in "".join(there.server.out.lines[so_far:])

        packed(archive, make.sdk_module(tmp_path, "sensor"), "two")
        await there.restart("probe")
        await there.server.out.says("first run of probe: setting up two", since=so_far)
        await there.server.out.says("StdOut.*version two", since=so_far)
        await until_reads(there, {"from": "a file"})


def packed(archive: Path, program: Path, version: str) -> Path:
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


async def test_a_resource_that_waits_is_no_reason_to_start_its_module_anew(tmp_path: Path) -> None:
    motors = module("motors", make.sdk_module(tmp_path, "motor"), log_level="warn")
    config: dict[str, Any] = {
        "modules": [motors],
        "components": [motor("wheel"), motor("waiting", needs=["nobody"])],
    }
    async with machine(config, tmp_path) as there:
        await there.ready("wheel")
        await there.unhealthy("waiting", "nobody")
        pid = await there.pid_of("wheel")
        config["components"].append(board())
        await there.apply(config)
        await there.ready("wheel", "board")
        assert await there.pid_of("wheel") == pid


async def test_status_restart_and_story(tmp_path: Path) -> None:
    config = {
        "modules": [
            module("motors", make.sdk_module(tmp_path, "motor"), module_id="acme:motors"),
            module("echoes", make.sdk_module(tmp_path, "echo")),
        ],
        "components": [motor("wheel")],
        "services": [service("echo", "acme:service:echo", "acme:test:echo")],
    }
    async with machine(config, tmp_path) as there:
        await there.ready()
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
        await restarts(there)
        await a_crash_is_told(there)
        await commands_show_modules(there)
        await a_custom_api_by_reflection(there)


async def restarts(there: There) -> None:
    """Each start has a socket of its own, which goes with it."""
    pid = await there.pid_of("wheel")
    first = Path((await there.ask("wheel", "about"))["arguments"][0])
    for asked in ({"name": "motors"}, {"module_id": "acme:motors"}):
        await there.restart(**asked)
        pid = await another_pid(there, pid)
    last = Path((await there.ask("wheel", "about"))["arguments"][0])
    assert last != first
    assert [*first.parent.glob("motors*.sock")] == [last]
    # It was wanted, so that nothing is wrong.
    assert not [line for line in there.server.out.lines if "\tERROR\t" in line]
    for asked in ({"name": "moters"}, {"module_id": "acme:moters"}):
        with refused() as told:
            await there.restart(**asked)
        assert told.status is Status.NOT_FOUND
        assert "module not found with id=" in told.words
        assert "motors" in told.words


async def another_pid(there: There, pid: int) -> int:
    found = await until(lambda: pid_if_any(there), lambda now: now not in (pid, None))
    assert found is not None
    return found


async def pid_if_any(there: There) -> int | None:
    try:
        return await there.pid_of("wheel")
    except GRPCError:
        return None


async def a_crash_is_told(there: There) -> None:
    with refused() as told:
        await there.ask("wheel", "exit", 9)
    assert told.status is Status.UNAVAILABLE
    await until(lambda: pid_if_any(there), lambda pid: pid is not None)


async def commands_show_modules(there: There) -> None:
    code, said = await there.cli("status", "--history", "--json")
    story = [each for each in json.loads(said) if each["event"] == "module"]
    assert code == 0
    mine = [each for each in story if each["module"] == "motors"]
    assert [each["state"] for each in mine].count("started") == 4
    failed = [each for each in mine if each["state"] == "failed"]
    assert len(failed) == 1
    assert "code 9" in failed[0]["reason"]
    code, said = await there.cli("status", "--history")
    assert "module motors" in said
    code, said = await there.cli("status")
    assert code == 0
    assert "acme:test:echo" in said


async def a_custom_api_by_reflection(there: There) -> None:
    names = await there.robot.ResourceNames(ResourceNamesRequest())
    assert ("acme", "echo") in [(each.namespace, each.subtype) for each in names.resources]
    code, said = await there.cli("call", "echo", "Unary", '{"text": "hello"}')
    assert code == 0, said
    assert json.loads(said)["text"] == "hello"
    code, said = await there.cli("call", "echo", "server_stream", '{"times": 3}')
    assert code == 0, said
    assert said.count("number") == 2  # it is 0 in the first


async def test_status_page_and_command_show_modules(tmp_path: Path) -> None:
    config = {"modules": [module("broken", tmp_path / "nowhere")], "components": [motor("wheel")]}
    async with machine(config, tmp_path) as there:
        reason = await there.unhealthy("wheel", "nowhere")
        assert 'module "broken"' in reason
        view = await there.view()
        assert [each["name"] for each in view["modules"]] == ["broken"]
        assert "nowhere" in view["modules"][0]["reason"]
        code, said = await there.cli("status")
        assert code == 1
        assert any("module" in line and "broken" in line for line in said.splitlines())


async def test_what_modules_say(tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "modules": [module("motors", make.sdk_module(tmp_path, "motor"))],
        "components": [motor("wheel")],
        "disable_log_deduplication": True,
    }
    wheel = "rdk.resource_manager.rdk:component:motor/wheel"
    async with machine(config, tmp_path) as there:
        await there.ready()
        out = there.server.out
        await there.ask("wheel", "print", "a line of its own")
        await out.says(r"INFO\trdk\.modmanager\.motors\.StdOut\t.*a line of its own")
        await there.ask("wheel", "print_error", "a complaint")
        await out.says(r"ERROR\trdk\.modmanager\.motors\.StdErr\t.*a complaint")
        await there.ask("wheel", "log", "word one")
        for level in ("INFO", "WARN", "ERROR", "CRITICAL"):
            await out.says(rf"{level}\t{wheel}\t.*word one")
        assert not said_at("DEBUG", "word one", out.lines)

        await many_at_once(there)
        await levels(there, config)


async def many_at_once(there: There) -> None:
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
        await there.server.out.says(
            rf"{level}\trdk.resource_manager.rdk:component:motor/wheel\t.*batch {number}"
        )


async def levels(there: There, config: dict[str, Any]) -> None:
    """debug > the module's log_level > log_configuration > patterns; lowering starts it again."""
    quiet, loud = {"log_configuration": {"level": "error"}}, {"log_level": "debug"}
    wheel, motors = config["components"][0], config["modules"][0]

    # Raised: at once, and without another start.
    pid = await there.pid_of("wheel")
    config["components"] = [{**wheel, **quiet}]
    await there.apply(config)
    assert await loudness(there, "quiet") == {"ERROR", "CRITICAL"}
    assert await there.pid_of("wheel") == pid

    # A pattern counts less.
    config["log"] = [{"pattern": "rdk.resource_manager.*", "level": "debug"}]
    await there.apply(config)
    assert await loudness(there, "pattern") == {"ERROR", "CRITICAL"}

    # The module's own level counts more, and is lower than what it was started with.
    config["modules"] = [{**motors, **loud}]
    await restarted_by(there, config, pid)
    pid = await there.pid_of("wheel")
    assert "--log-level=debug" in (await there.ask("wheel", "about"))["arguments"]
    assert await loudness(there, "loud") == {"DEBUG", "INFO", "WARN", "ERROR", "CRITICAL"}
    await there.server.out.says("log_configuration of rdk:component:motor/wheel has no effect")

    config["modules"] = [{**motors, "log_level": "warn"}]
    await there.apply(config)
    assert await loudness(there, "warned") == {"WARN", "ERROR", "CRITICAL"}
    assert await there.pid_of("wheel") == pid

    # Without any of them, the pattern; with `debug`, nothing else.
    config["modules"], config["components"] = [motors], [wheel]
    await there.apply(config)
    await there.ready("wheel")
    assert "DEBUG" in await loudness(there, "by pattern")
    config["modules"], config["log"] = [{**motors, "log_level": "error"}], []
    await there.apply(config)
    assert await loudness(there, "error only") == {"ERROR", "CRITICAL"}
    config["debug"] = True
    await there.apply(config)
    await there.ready("wheel")
    assert "DEBUG" in await loudness(there, "debugged")


async def restarted_by(there: There, config: dict[str, Any], pid: int) -> None:
    there.save(config)
    await another_pid(there, pid)


async def logs(there: There, words: str) -> bool:
    try:
        await there.ask("wheel", "log", words)
    except GRPCError as error:
        if error.status is not Status.UNAVAILABLE:
            raise
        return False
    return True


async def loudness(there: There, words: str) -> set[str]:
    """The levels at which the wheel is heard."""
    out = there.server.out
    # It may be on its way to another process.
    await until(lambda: logs(there, words), bool)
    await out.says(rf"CRITICAL\trdk\.resource_manager\.\S+wheel\t.*{words}")
    return {
        level
        for level in ("DEBUG", "INFO", "WARN", "ERROR", "CRITICAL")
        if said_at(level, words, out.lines)
    }


def said_at(level: str, words: str, lines: list[str]) -> bool:
    return any(
        line.split("\t")[1:2] == [level] and "resource_manager" in line and words in line
        for line in lines
    )
