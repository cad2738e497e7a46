"""`cogwork fleet claim`."""

from __future__ import annotations

import argparse

from google.protobuf.wrappers_pb2 import StringValue

from cogwork.cli.fleet.fleet_client import FleetClient, with_fleet
from cogwork.cli.fleet.inventory import find_part
from cogwork.cli.terminal import EXIT_OK, print_json, print_text
from cogwork.wire.messages.claim_method import CLAIM_LIFETIME, CREATE_CLAIM


def claim(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        part = find_part(client, arguments.part)
        code = client.call(CREATE_CLAIM, StringValue(value=part.id), StringValue).value
        if arguments.json:
            print_json({"part": part.id, "code": code, "seconds": CLAIM_LIFETIME})
            return EXIT_OK
        minutes = CLAIM_LIFETIME // 60
        print_text(
            f"Within {minutes} minutes, run this once on the computer of {part.name}:\n"
            f"  sudo cogwork-agent join {client.login.url} {code}"
        )
        return EXIT_OK

    return with_fleet(run)
