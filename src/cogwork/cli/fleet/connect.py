"""`cogwork fleet connect`."""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import Final

from cogwork.cli.fleet.connection_snippet import (
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
from cogwork.resource import sdk

assert sdk.VERSION  # `sdk` must be imported before the SDK itself
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

_TIMEOUT: Final = 30.0


def connect(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        part = find_part(client, arguments.part)
        if arguments.check:
            return _check(part, client.login, as_json=arguments.json)
        address, snippet = make_dial_address(part.fqdn, client.login), _render(part, client.login)
        if arguments.json:
            print_json({"name": part.fqdn, "address": address, "python": snippet})
        else:
            print_error(
                f"name:    {part.fqdn}\naddress: {address}\n{render_requirements(client.login)}\n"
            )
            print_text(snippet.rstrip("\n"))
        return EXIT_OK

    return with_fleet(run)


def _render(part: pb.RobotPart, login: FleetLogin) -> str:
    return render_snippet(part.fqdn, login)


def _check(part: pb.RobotPart, login: FleetLogin, *, as_json: bool) -> int:
    address = make_dial_address(part.fqdn, login)
    if login.authority is not None:
        os.environ["SSL_CERT_FILE"] = str(login.authority)
    with ProgressLine() as progress:
        progress.show(f"connecting to {address}")
        try:
            names = asyncio.run(asyncio.wait_for(_list_resources(address, login), _TIMEOUT))
        except Exception as error:
            progress.clear()
            print_error(
                f"cannot connect to {address} ({str(error) or 'no answer in time'}); check that "
                f"the machine is online with `cogwork fleet parts {part.robot}`, and that the name "
                f"leads to the cloud with `getent hosts {part.fqdn}`"
            )
            return EXIT_FAILURE
    if as_json:
        print_json({"name": part.fqdn, "address": address, "resources": names})
        return EXIT_OK
    print_text(f"connected to {address}: {len(names)} resource{'' if len(names) == 1 else 's'}")
    for name in names:
        print_text(f"  {name}")
    return EXIT_OK


async def _list_resources(address: str, login: FleetLogin) -> list[str]:
    from viam.robot.client import RobotClient

    options = RobotClient.Options.with_api_key(login.key, login.key_id)
    options.refresh_interval = 0
    options.check_connection_interval = 0
    options.attempt_reconnect_interval = 0
    assert options.dial_options is not None  # made by with_api_key
    options.dial_options.insecure = not login.is_encrypted
    options.dial_options.initial_connection_attempts = 1
    async with await RobotClient.at_address(address, options) as machine:
        return sorted(
            f"{each.namespace}:{each.type}:{each.subtype}/{each.name}"
            for each in machine.resource_names
        )
