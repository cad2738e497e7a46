"""The commands that create credentials: `cogwork auth` and `cogwork certs`."""

from __future__ import annotations

from cogwork.cli.parsers.options import JSON, YES
from cogwork.core.command_line import argument, command, group, option

_FILE = argument("FILE", "configuration file of the machine")

AUTH = group(
    "auth",
    "Manage the API keys of a machine",
    command(
        "add-key",
        "Add an API key to a configuration file",
        "cogwork.cli.config.auth:add_key",
        _FILE,
        option(
            "--role",
            None,
            "what its clients may call (default: owner, everything)",
            choices=("owner", "operator", "viewer"),
            default="owner",
        ),
        option("--name", "NAME", "name of the key, such as laptop"),
        JSON,
        epilog="The key is printed once. Exit status: 2 if the file cannot be edited.",
    ),
    command(
        "list",
        "List the API keys in a configuration file",
        "cogwork.cli.config.auth:list_keys",
        _FILE,
        JSON,
        epilog="The keys themselves are not printed. Exit status: 2 if the file cannot be read.",
    ),
    command(
        "remove",
        "Remove an API key from a configuration file",
        "cogwork.cli.config.auth:remove_key",
        _FILE,
        argument("KEY", "name or ID of the key, as `cogwork auth list` prints it"),
        YES,
        epilog="Exit status: 1 if you decline, 2 if there is no such key, if it is the only login, "
        "or if the file cannot be edited.",
    ),
)
CERTS = group(
    "certs",
    "Create TLS certificates",
    command(
        "local",
        "Create or renew a certificate that your own authority signs",
        "cogwork.cli.config.certs:local",
        argument(
            "NAME",
            "host name or IP address of the machine; localhost is always included",
            dest="names",
            nargs="+",
        ),
        option(
            "--directory",
            "DIR",
            "directory of the authority and the certificate (default: certs)",
            default="certs",
        ),
        JSON,
        epilog="Exit status: 2 if the certificate cannot be issued.",
    ),
    command(
        "client",
        "Create or renew a certificate with which a client logs in",
        "cogwork.cli.config.certs:client",
        argument("NAME", "name of the client, such as laptop.example"),
        option(
            "--directory",
            "DIR",
            "directory of the authority, as `cogwork certs local` made it (default: certs)",
            default="certs",
        ),
        JSON,
        epilog="Exit status: 2 if the certificate cannot be issued.",
    ),
)
