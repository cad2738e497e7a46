"""`cogwork fleet restart`."""

from __future__ import annotations

import argparse

from cogwork.cli.fleet.fleet_client import FleetClient, with_fleet
from cogwork.cli.fleet.inventory import find_part
from cogwork.cli.terminal import EXIT_OK, print_text
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402


def restart(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        part = find_part(client, arguments.part)
        request = pb.MarkPartForRestartRequest(part_id=part.id)
        client.call("MarkPartForRestart", request, pb.MarkPartForRestartResponse)
        print_text(
            f"{part.name} restarts when it next asks the cloud; watch it with: "
            f"cogwork fleet logs {part.id} -f"
        )
        return EXIT_OK

    return with_fleet(run)
