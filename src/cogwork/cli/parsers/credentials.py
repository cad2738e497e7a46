"""The parsers of commands that create credentials: `auth` and `certs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.cli.parsers.options import add_json_option

if TYPE_CHECKING:
    from cogwork.cli.parsers.options import Subparsers


def add_auth(commands: Subparsers) -> None:
    auth = commands.add_parser("auth", help="Manage the API keys of a machine")
    subcommands = auth.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_key = subcommands.add_parser(
        "add-key",
        help="Add an API key to a configuration file",
        epilog="The key is printed once. Exit status: 2 if the file cannot be edited.",
    )
    add_key.add_argument("file", metavar="FILE", help="configuration file of the machine")
    add_key.add_argument(
        "--role",
        choices=("owner", "operator", "viewer"),
        default="owner",
        help="what its clients may call (default: owner, everything)",
    )
    add_json_option(add_key)
    add_key.set_defaults(run="cogwork.cli.auth:add_key")


def add_certs(commands: Subparsers) -> None:
    certs = commands.add_parser("certs", help="Create TLS certificates")
    subcommands = certs.add_subparsers(title="commands", required=True, metavar="COMMAND")
    local = subcommands.add_parser(
        "local",
        help="Create or renew a certificate that your own authority signs",
        epilog="Exit status: 2 if the certificate cannot be issued.",
    )
    local.add_argument(
        "names",
        metavar="NAME",
        nargs="+",
        help="host name or IP address of the machine; localhost is always included",
    )
    local.add_argument(
        "--directory",
        metavar="DIR",
        default="certs",
        help="directory of the authority and the certificate (default: certs)",
    )
    add_json_option(local)
    local.set_defaults(run="cogwork.cli.certs:local")
    client = subcommands.add_parser(
        "client",
        help="Create or renew a certificate with which a client logs in",
        epilog="Exit status: 2 if the certificate cannot be issued.",
    )
    client.add_argument("name", metavar="NAME", help="name of the client, such as laptop.example")
    client.add_argument(
        "--directory",
        metavar="DIR",
        default="certs",
        help="directory of the authority, as `cogwork certs local` made it (default: certs)",
    )
    add_json_option(client)
    client.set_defaults(run="cogwork.cli.certs:client")
