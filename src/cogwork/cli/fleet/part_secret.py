"""`cogwork fleet part rotate`."""

from __future__ import annotations

import argparse
from pathlib import Path

from cogwork.cli.confirmation import confirm
from cogwork.cli.fleet.fleet_client import FleetClient, with_fleet
from cogwork.cli.fleet.inventory import find_part, read_part
from cogwork.cli.fleet.machine_file import MachineFile, require_writable
from cogwork.cli.terminal import EXIT_FAILURE, EXIT_OK, print_error, print_json
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402


def rotate(arguments: argparse.Namespace) -> int:
    return with_fleet(lambda client: _rotate(client, arguments))


def _rotate(client: FleetClient, arguments: argparse.Namespace) -> int:
    output = Path(arguments.output) if arguments.output is not None else None
    if output is not None:
        require_writable(output)
    part = find_part(client, arguments.part)
    if not arguments.yes and not confirm(
        f"Replace the secret of {part.name}? The machine is cut off until it has the new one."
    ):
        print_error("nothing was changed")
        return EXIT_FAILURE
    _replace_secrets(client, part)
    file = MachineFile(read_part(client, part.id), client.login, output)
    file.write("the secret was replaced")
    if arguments.json:
        print_json({"part": part.id, "name": part.name, **file.as_json()})
    else:
        file.print(f"replaced the secret of {part.name}; the old one is no longer valid")
    return EXIT_OK


def _replace_secrets(client: FleetClient, part: pb.RobotPart) -> None:
    # Do not create the new secret first: it would be sent to every server that uses an old secret.
    # Instead, delete the old secrets. The cloud replaces the last one when it is deleted.
    for secret in part.secrets:
        request = pb.DeleteRobotPartSecretRequest(part_id=part.id, secret_id=secret.id)
        client.call("DeleteRobotPartSecret", request, pb.DeleteRobotPartSecretResponse)
    # If the part lists no secrets, create one. The call fails if the list is empty because the user
    # is not an owner.
    if not part.secrets:
        create = pb.CreateRobotPartSecretRequest(part_id=part.id)
        client.call("CreateRobotPartSecret", create, pb.CreateRobotPartSecretResponse)
