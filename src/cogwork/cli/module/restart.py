"""`cogwork module restart`: restart a module of a running machine."""

from __future__ import annotations

import argparse
import time

import grpc

from cogwork.cli.client.grpc_client import CommandError, call_robot, with_channel
from cogwork.cli.terminal import EXIT_FAILURE, EXIT_OK, ProgressLine, print_error, print_json
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

_POLL_INTERVAL = 0.1
"""Seconds between two status requests."""
_PROGRESS_INTERVAL = 10.0
"""Seconds between two progress messages."""
_MAX_WAIT = 2 * 3600.0
"""Timeout in seconds. Unpacking and the module's own setup may take an hour."""
_READY = robot.ModuleStatus.STATE_READY
_FINAL_STATES = (_READY, robot.ModuleStatus.STATE_UNHEALTHY)


def restart(arguments: argparse.Namespace) -> int:
    return with_channel(arguments.address, lambda channel: _restart(channel, arguments))


def _restart(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    name, began = arguments.name, time.monotonic()
    before = _fetch_status(channel, name)
    request = robot.RestartModuleRequest(module_name=name)
    try:
        call_robot(channel, "RestartModule", request, robot.RestartModuleResponse)
    except grpc.RpcError as refusal:
        if refusal.code() is grpc.StatusCode.NOT_FOUND:
            raise CommandError(refusal.details() or "") from refusal
        raise
    after = _wait_for_restart(channel, name, before)
    ready = after is not None and after.state == _READY
    error = after.error if after is not None else "it was removed from the configuration"
    seconds = round(time.monotonic() - began, 1)
    if arguments.json:
        print_json({"module": name, "ready": ready, "error": error, "seconds": seconds})
    elif ready:
        print(f"{name} restarted in {seconds}s")
    else:
        print_error(f"{name} is not ready after its restart: {error}")
    return EXIT_OK if ready else EXIT_FAILURE


def _wait_for_restart(
    channel: grpc.Channel, name: str, before: robot.ModuleStatus | None
) -> robot.ModuleStatus | None:
    """Return the module's final status, or None if it was removed."""
    began = reported = time.monotonic()
    with ProgressLine() as line:
        while (now := _fetch_status(channel, name)) is not None:
            new = before is None or now.last_updated != before.last_updated
            waited = time.monotonic() - began
            if (new and now.state in _FINAL_STATES) or waited > _MAX_WAIT:
                return now
            doing = f": {now.error}" if new and now.error else ""
            if line.is_visible:
                line.show(f"{name} is starting, {waited:.0f}s{doing}")
            elif time.monotonic() - reported >= _PROGRESS_INTERVAL:
                reported = time.monotonic()
                print_error(f"{name} is still starting after {waited:.0f}s{doing}")
            time.sleep(_POLL_INTERVAL)
    return None


def _fetch_status(channel: grpc.Channel, name: str) -> robot.ModuleStatus | None:
    request = robot.GetMachineStatusRequest()
    machine = call_robot(channel, "GetMachineStatus", request, robot.GetMachineStatusResponse)
    return next((each for each in machine.modules if each.module_name == name), None)
