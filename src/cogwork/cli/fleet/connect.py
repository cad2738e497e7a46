"""`cogwork fleet connect`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Iterator
from typing import Final

from cogwork.cli.fleet.connection_snippet import (
    LOCAL_NAME_REASON,
    is_local_name,
    make_dial_address,
    render_requirements,
    render_snippet,
)
from cogwork.cli.fleet.fleet_client import FleetClient, with_fleet
from cogwork.cli.fleet.inventory import find_part
from cogwork.cli.fleet.stored_login import FleetLogin
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_OK,
    ProgressLine,
    print_error,
    print_json,
    print_text,
)
from cogwork.config.schema.default_services import DEFAULT_SERVICES
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

_TIMEOUT: Final = 30.0
_NEXT_STEP: Final = "check that the machine runs and is connected to the cloud"


class CannotConnect(CogworkError):
    """A connection to a machine through its cloud failed."""

    status = "UNAVAILABLE"


def connect(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        part = find_part(client, arguments.part)
        if arguments.check:
            return _check(part, client.login, as_json=arguments.json)
        address = make_dial_address(part.fqdn, client.login)
        snippet = render_snippet(part.fqdn, client.login)
        if arguments.json:
            print_json({"name": part.fqdn, "address": address, "python": snippet})
        else:
            print_error(f"name:    {part.fqdn}\naddress: {address}")
            print_error(f"{render_requirements(part.fqdn, client.login)}\n")
            print_text(snippet.rstrip("\n"))
        return EXIT_OK

    return with_fleet(run)


def _check(part: pb.RobotPart, login: FleetLogin, *, as_json: bool) -> int:
    address = make_dial_address(part.fqdn, login)
    if login.authority is not None:
        os.environ["SSL_CERT_FILE"] = str(login.authority)
    with ProgressLine() as progress:
        progress.show(f"connecting to {address}")
        try:
            names = _connect(part.fqdn, address, login)
        except CannotConnect as error:
            progress.clear()
            print_error(f"cannot connect to {address}: {error}")
            return EXIT_FAILURE
    if as_json:
        print_json({"name": part.fqdn, "address": address, "resources": names})
        return EXIT_OK
    print_text(f"connected to {address}: {len(names)} resource{'' if len(names) == 1 else 's'}")
    for name in names:
        print_text(f"  {name}")
    return EXIT_OK


def _connect(fqdn: str, address: str, login: FleetLogin) -> list[str]:
    """Return the resources of the machine. Raise CannotConnect."""
    if is_local_name(fqdn):
        raise CannotConnect(LOCAL_NAME_REASON)
    try:
        socket.getaddrinfo(fqdn, login.port)
    except OSError as error:
        raise CannotConnect(
            f"the name cannot be resolved ({os_reason(error)}); make the names of machines resolve "
            f"to {login.host}, by a wildcard in DNS or a line in /etc/hosts"
        ) from None
    try:
        with _mute_output():
            return asyncio.run(asyncio.wait_for(_list_resources(address, login), _TIMEOUT))
    except TimeoutError:
        raise CannotConnect(f"no answer within {_TIMEOUT:g} s; {_NEXT_STEP}") from None
    except Exception as error:  # the SDK raises errors of many libraries
        raise CannotConnect(f"{str(error).rstrip('.')}; {_NEXT_STEP}") from None


@contextlib.contextmanager
def _mute_output() -> Iterator[None]:
    """Discard the SDK's output, because its native library prints long stack traces on failures."""
    sys.stdout.flush()
    saved = {number: os.dup(number) for number in (1, 2)}
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in saved:
            os.dup2(null, number)
        yield
    finally:
        sys.stdout.flush()
        for number, copy in saved.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(null)


async def _list_resources(address: str, login: FleetLogin) -> list[str]:
    from viam.robot.client import RobotClient

    options = RobotClient.Options.with_api_key(login.key, login.key_id)
    options.log_level = logging.CRITICAL
    options.refresh_interval = 0
    options.check_connection_interval = 0
    options.attempt_reconnect_interval = 0
    assert options.dial_options is not None  # set by `with_api_key`
    options.dial_options.insecure = not login.is_encrypted
    options.dial_options.initial_connection_attempts = 1
    async with await RobotClient.at_address(address, options) as machine:
        listed = {
            f"{each.namespace}:{each.type}:{each.subtype}/{each.name}"
            for each in machine.resource_names
        }
        # People count the resources of their configuration.
        return sorted(listed.difference(map(str, DEFAULT_SERVICES)))
