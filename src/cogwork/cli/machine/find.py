"""`cogwork find`: machines on the local network."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import asdict

from cogwork.cli.terminal import EXIT_FAILURE, EXIT_OK, print_error, print_json
from cogwork.discovery.search import find_machines
from cogwork.discovery.sightings import FoundMachine


def find(arguments: argparse.Namespace) -> int:
    """Print the machines that answer."""
    found = asyncio.run(find_machines(arguments.seconds))
    if arguments.json:
        print_json([asdict(machine) for machine in found])
    elif found:
        print(_format(found))
    else:
        print_error(
            "no machine answered; a machine that listens on localhost is found on its own computer "
            "only, and one with -disable-mdns not at all"
        )
    return EXIT_OK if found else EXIT_FAILURE


def _format(found: list[FoundMachine]) -> str:
    rows = [("NAME", "ADDRESS", "TRANSPORTS")]
    for machine in found:
        host = f"[{machine.address}]" if ":" in machine.address else machine.address
        rows.append((machine.name, f"{host}:{machine.port}", ", ".join(machine.transports)))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(
        f"{name:{widths[0]}}  {address:{widths[1]}}  {transports}".rstrip()
        for name, address, transports in rows
    )
