"""`cogwork module restart`: a module of a running machine, started again."""

from __future__ import annotations

import argparse
import contextlib
import time

import grpc

from cogwork.cli.dial import ask, dialed
from cogwork.cli.terminal import FAULTS, FINE, complain, print_json
from cogwork.resource import sdk

assert sdk.VERSION  # ahead of whatever else imports the SDK
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

_LOOK = 0.1
"""Seconds between two looks at it."""
_SAY = 10.0
"""Seconds after which to say that it takes a while, and after that again."""
_LONGEST = 2 * 3600.0
"""Seconds: it may have to be unpacked and to set itself up, for which it gets an hour."""
_READY = robot.ModuleStatus.STATE_READY
_OVER = (_READY, robot.ModuleStatus.STATE_UNHEALTHY)


def restart(arguments: argparse.Namespace) -> int:
    with contextlib.suppress(KeyboardInterrupt):
        return dialed(arguments.address, lambda channel: _restart(channel, arguments))
    return FAULTS


def _restart(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    name, began = arguments.name, time.monotonic()
    before = _status(channel, name)
    request = robot.RestartModuleRequest(module_name=name)
    ask(channel, "RestartModule", request, robot.RestartModuleResponse)
    after = _outcome(channel, name, before)
    ready = after is not None and after.state == _READY
    error = after.error if after is not None else "it was taken out of the configuration"
    seconds = round(time.monotonic() - began, 1)
    if arguments.json:
        print_json({"module": name, "ready": ready, "error": error, "seconds": seconds})
    elif ready:
        print(f"{name} is ready again, after {seconds} s")
    else:
        complain(f"{name} was started again: {error}")
    return FINE if ready else FAULTS


def _outcome(
    channel: grpc.Channel, name: str, before: robot.ModuleStatus | None
) -> robot.ModuleStatus | None:
    """None: it is not there any more."""
    began = said = time.monotonic()
    while (now := _status(channel, name)) is not None:
        new = before is None or now.last_updated != before.last_updated
        if (new and now.state in _OVER) or time.monotonic() - began > _LONGEST:
            return now
        if time.monotonic() - said >= _SAY:
            said = time.monotonic()
            complain(f"{name} is still starting, after {said - began:.0f} s; see `cogwork logs`")
        time.sleep(_LOOK)
    return None


def _status(channel: grpc.Channel, name: str) -> robot.ModuleStatus | None:
    request = robot.GetMachineStatusRequest()
    machine = ask(channel, "GetMachineStatus", request, robot.GetMachineStatusResponse)
    return next((each for each in machine.modules if each.module_name == name), None)
