r"""A client of a machine that uses only the public SDK, in a child process.

Run as `sdk_client.py <port> drive` to use everything once, or `sdk_client.py <port> call` to call
until standard input ends. It prints `ready`, and at the end `report` with its observations as JSON.
"""

import asyncio
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from grpclib import GRPCError
from viam.components.board import Board
from viam.components.generic import Generic as GenericComponent
from viam.components.motor import Motor
from viam.components.sensor import Sensor
from viam.components.switch import Switch
from viam.proto.component.board import PowerMode
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions
from viam.services.generic import Generic as GenericService

DEADLINE = 30.0


async def connect(port: str) -> Any:
    """Return an untyped client: some of its methods are not annotated."""
    options = RobotClient.Options(
        dial_options=DialOptions(insecure=True, disable_webrtc=True),
        log_level=logging.ERROR,
        check_connection_interval=1,
    )
    return await RobotClient.at_address(f"localhost:{port}", options)


async def outcome(call: Awaitable[Any]) -> list[str]:
    """Return the status and the message of the call."""
    try:
        answer = await asyncio.wait_for(call, DEADLINE)
    except GRPCError as error:
        return [error.status.name, error.message or ""]
    return ["OK", repr(answer)]


async def drive(robot: RobotClient) -> dict[str, Any]:
    return {
        "names": [f"{name.subtype}/{name.name}" for name in robot.resource_names],
        "sensor": await drive_sensor(Sensor.from_robot(robot, "probe")),
        "motor": await drive_motor(Motor.from_robot(robot, "wheel")),
        "board": await drive_board(Board.from_robot(robot, "board")),
        "switch": await drive_switch(Switch.from_robot(robot, "switch")),
        "generic component": await drive_generic(GenericComponent.from_robot(robot, "echo")),
        "generic service": await drive_generic(GenericService.from_robot(robot, "echo")),
        "unhealthy": await outcome(Sensor.from_robot(robot, "dead").get_readings()),
        "its dependent": await outcome(Sensor.from_robot(robot, "orphan").get_readings()),
        "machine": await drive_machine(robot),
        "operations": await drive_operations(robot, Motor.from_robot(robot, "wheel")),
        "modules of ours": sorted(name for name in sys.modules if name.startswith("cogwork")),
    }


async def drive_sensor(sensor: Sensor) -> dict[str, Any]:
    return {
        "readings": dict(await sensor.get_readings()),
        "second reading": await outcome(sensor.get_readings()),
        "third reading": dict(await sensor.get_readings(extra={"x": 1}, timeout=60)),
        "status": dict(await sensor.get_status()),
        "geometries": list(await sensor.get_geometries()),
        "command": await outcome(sensor.do_command({"x": 1})),
    }


async def drive_motor(motor: Motor) -> dict[str, Any]:
    await motor.set_power(0.5)
    powered = await motor.is_powered()
    moving = await motor.is_moving()
    await motor.stop()
    stopped = await motor.is_moving()
    await motor.reset_zero_position(0.0)
    await motor.go_for(rpm=600, revolutions=1)
    there = await motor.get_position()
    await motor.go_to(rpm=600, position_revolutions=-0.5)
    return {
        "powered": list(powered),
        "moving": [moving, stopped],
        "positions": [there, await motor.get_position()],
        "too fast": await outcome(motor.set_rpm(100_000)),
        "reports position": (await motor.get_properties()).position_reporting,
    }


async def drive_board(board: Board) -> dict[str, Any]:
    analog = await board.analog_by_name("dial")
    before = (await analog.read()).value
    await analog.write(7)
    pin = await board.gpio_pin_by_name("12")
    await pin.set_pwm(0.25)
    await pin.set_pwm_frequency(50)
    interrupt = await board.digital_interrupt_by_name("edge")
    ticks = await drive_ticks(board, interrupt, await board.gpio_pin_by_name("11"))
    await board.set_power_mode(PowerMode.POWER_MODE_OFFLINE_DEEP, timedelta(minutes=1))
    missing = await board.analog_by_name("diel")
    return {
        "analog": [before, (await analog.read()).value],
        "pwm": [await pin.get_pwm(), await pin.get_pwm_frequency()],
        "ticks": ticks,
        "interrupts": await interrupt.value(),
        "power mode": (await board.get_status())["power_mode"],
        "missing": await outcome(missing.read()),
    }


async def drive_ticks(
    board: Board, interrupt: Board.DigitalInterrupt, pin: Board.GPIOPin
) -> list[bool]:
    """Read a first tick, which proves that the stream is open."""
    stream = await board.stream_ticks([interrupt])
    reader = aiter(stream)
    assert not (await anext(reader)).pin_name  # it is open
    first = asyncio.ensure_future(anext(reader))
    high = False
    while not first.done():
        high = not high
        await pin.set(high)
        await asyncio.wait([first], timeout=0.05)
    await pin.set(not high)
    while (tick := await asyncio.wait_for(anext(reader), DEADLINE)).high == high:
        pass
    return [(await first).pin_name == "edge", tick.high != high, await pin.get() != high]


async def drive_switch(switch: Switch) -> dict[str, Any]:
    await switch.set_position(1)
    count, labels = await switch.get_number_of_positions()
    return {
        "position": await switch.get_position(),
        "labels": [count, *labels],
        "beyond": await outcome(switch.set_position(9)),
    }


async def drive_generic(generic: GenericComponent | GenericService) -> dict[str, Any]:
    # No null, which the SDK reads as 0.
    command: dict[str, Any] = {"text": "ü", "number": 1.5, "list": [True, {"deep": []}]}
    return {"echo": await generic.do_command(command) == command}


async def drive_machine(robot: RobotClient) -> dict[str, Any]:
    status = await robot.get_machine_status()
    version = await robot.get_version()
    await robot.log("sdk.client", "warning", datetime.now(UTC), "a word from the client", "")
    return {
        "state": status.state,
        "revision": status.config.revision,
        "resources": {each.name.name: [each.state, each.error] for each in status.resources},
        "version": [version.platform, version.version],
        "cloud": await outcome(robot.get_cloud_metadata()),
        "models of modules": await outcome(robot.get_models_from_modules()),
        "loud": await outcome(robot.log("x", "loud", datetime.now(UTC), "x", "")),
    }


async def drive_operations(robot: RobotClient, motor: Motor) -> dict[str, Any]:
    going = asyncio.ensure_future(outcome(motor.go_for(rpm=1, revolutions=100)))
    wanted = await wait_for_operation(robot, "GoFor")
    await robot.cancel_operation(wanted)
    cancelled = await going
    still_moving = await motor.is_moving()
    going = asyncio.ensure_future(outcome(motor.go_for(rpm=60, revolutions=0.5)))
    await robot.block_for_operation(await wait_for_operation(robot, "GoFor"))
    finished = (await asyncio.wait_for(going, 1))[0]
    going = asyncio.ensure_future(outcome(motor.go_for(rpm=1, revolutions=100)))
    await wait_for_operation(robot, "GoFor")
    await robot.stop_all()
    return {
        "cancelled": [word.replace(wanted, "<id>") for word in cancelled],
        "still moving": still_moving,
        "blocked until": finished,
        "stopped": await going,
        "left": [each.method for each in await robot.get_operations()],
        "moving after all": await motor.is_moving(),
        "unknown": await outcome(robot.cancel_operation("nobody")),
    }


async def wait_for_operation(robot: RobotClient, method: str) -> str:
    async with asyncio.timeout(DEADLINE):
        while True:
            for operation in await robot.get_operations():
                if operation.method.endswith(f"/{method}"):
                    return operation.id


class RepeatedCaller:
    """Repeats calls and records their outcomes."""

    def __init__(self) -> None:
        self.answered = Counter[str]()
        self.refused = Counter[str]()
        self.slowest: dict[str, float] = {}
        self.complaints: list[str] = []
        self.last_turn = 0
        self.lag = 0.0
        self.over = False

    async def loop(self, name: str, call: Callable[[], Awaitable[Any]]) -> None:
        while not self.over:
            began = time.monotonic()
            try:
                await asyncio.wait_for(call(), DEADLINE)
                self.answered[name] += 1
            except GRPCError as error:
                self.refused[f"{name}: {error.status.name} {_kind(error.message or '')}"] += 1
            except Exception as error:
                self.complaints.append(f"{name}: {error!r}")
                return
            took = time.monotonic() - began
            self.slowest[name] = max(self.slowest.get(name, 0.0), took)
            # Like a program that also has other work.
            await asyncio.sleep(0.005)

    async def measure_lag(self) -> None:
        """Measure the delay of this process itself, which is caused by the computer."""
        while not self.over:
            began = time.monotonic()
            await asyncio.sleep(0.01)
            self.lag = max(self.lag, time.monotonic() - began - 0.01)

    def record_turn(self, turn: int) -> None:
        if turn < self.last_turn:
            self.complaints.append(f"the reading went back from {self.last_turn} to {turn}")
        self.last_turn = turn


def _kind(message: str) -> str:
    for words in ("not available; reason=", "is being reconfigured; try again", "no node found"):
        if words in message:
            return words
    return message


async def call(robot: RobotClient) -> dict[str, Any]:
    caller = RepeatedCaller()
    steady = Sensor.from_robot(robot, "steady")
    guest = Sensor.from_robot(robot, "guest")
    fragile = Sensor.from_robot(robot, "fragile")
    wheel = Motor.from_robot(robot, "wheel")
    arm = Motor.from_robot(robot, "arm")
    echo = GenericComponent.from_robot(robot, "echo")
    board = Board.from_robot(robot, "board")
    interrupt = await board.digital_interrupt_by_name("edge")
    pin = await board.gpio_pin_by_name("11")
    numbers = iter(range(sys.maxsize))

    async def read() -> None:
        readings: Mapping[str, Any] = await steady.get_readings()
        caller.record_turn(int(readings["turn"]))

    async def command() -> None:
        number = next(numbers)
        assert await echo.do_command({"number": number}) == {"number": number}

    async def watch() -> None:
        await board.get_status()
        reader = aiter(await board.stream_ticks([interrupt]))
        assert not (await anext(reader)).pin_name  # it is open
        reading = asyncio.ensure_future(anext(reader))
        try:
            high = False
            while not reading.done():
                high = not high
                await pin.set(high)
                await asyncio.wait([reading], timeout=0.02)
            reading.result()
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError, GRPCError):
                await reading

    loops: dict[str, Callable[[], Awaitable[Any]]] = {
        "changed in place": read,
        "replaced, short calls": lambda: wheel.go_for(rpm=60, revolutions=0.2),
        "replaced, long calls": lambda: arm.go_for(rpm=60, revolutions=8),
        "depends on a replaced one": command,
        "added and removed": guest.get_readings,
        "broken and mended": fragile.get_readings,
        "streams": watch,
        "names": robot.refresh,
    }
    tasks = [asyncio.ensure_future(caller.loop(name, made)) for name, made in loops.items()]
    tasks.append(asyncio.ensure_future(caller.measure_lag()))
    await asyncio.to_thread(sys.stdin.read)
    caller.over = True
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "answered": dict(caller.answered),
        "refused": dict(caller.refused),
        "slowest": caller.slowest,
        "lag": caller.lag,
        "complaints": caller.complaints,
        "last turn": caller.last_turn,
    }


async def main(port: str, what: str) -> None:
    robot = await connect(port)
    print("ready", flush=True)
    report = await {"drive": drive, "call": call}[what](robot)
    if what == "drive":
        await robot.shutdown()
    await robot.close()
    print("report", json.dumps(report), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
