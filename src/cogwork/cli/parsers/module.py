"""The commands of `cogwork module`."""

from __future__ import annotations

from cogwork.cli.parsers.options import JSON, SERVER_PORT, add_address_option
from cogwork.core.command_line import argument, command, group, option

MODULE = group(
    "module",
    "Create and run modules",
    command(
        "new",
        "Create a module with a test",
        "cogwork.cli.module.new:new",
        argument("NAME", "name of the module and its package, e.g. demo"),
        option("--directory", "DIR", "directory to create (default: NAME)"),
        option("--api", "API", "API to implement (default: motor)", default="motor"),
        option("--model", "MODEL", "model name (default: acme:NAME:API)"),
        epilog="Exit status: 0 if the module was created, 2 if it cannot be written.",
    ),
    command(
        "run",
        "Run a module in a machine and restart it when its files change",
        "cogwork.cli.module.run:run",
        argument(
            "DIR|FILE",
            "the module (default: the current directory)",
            dest="path",
            nargs="?",
            default=".",
        ),
        option(
            "--config",
            "FILE",
            "configuration of the machine (default: DIR/machine.json, or a generated one)",
        ),
        SERVER_PORT,
        epilog="Runs until Ctrl-C. Exit status: 1 if the server exits, 2 if the module does not "
        "exist or an installed package hides it, 130 after Ctrl-C.",
    ),
    command(
        "restart",
        "Restart a module of a running machine",
        "cogwork.cli.module.restart:restart",
        argument("NAME", "name of the module in the configuration"),
        JSON,
        add_address_option,
        epilog="Exit status: 0 if the module is ready, 1 if not, 2 if it is not configured or the "
        "machine cannot be reached.",
    ),
)
