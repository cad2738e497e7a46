"""The parser of `cogwork module`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.cli.parsers.options import add_address_option, add_json_option, parse_port_argument

if TYPE_CHECKING:
    from cogwork.cli.parsers.options import Subparsers


def add_module(commands: Subparsers) -> None:
    module = commands.add_parser("module", help="Create and run modules")
    subcommands = module.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_module_new(subcommands)
    _add_module_run(subcommands)
    _add_module_restart(subcommands)


def _add_module_new(commands: Subparsers) -> None:
    new = commands.add_parser(
        "new",
        help="Create a module with a test",
        epilog="Exit status: 0 if the module was created, 2 if it cannot be written.",
    )
    new.add_argument("name", metavar="NAME", help="name of the module and its package, e.g. demo")
    new.add_argument("--directory", metavar="DIR", help="directory to create (default: NAME)")
    new.add_argument("--api", default="motor", help="API to implement (default: motor)")
    new.add_argument("--model", help="model name (default: acme:NAME:API)")
    new.set_defaults(run="cogwork.cli.module_new:new")


def _add_module_run(commands: Subparsers) -> None:
    run = commands.add_parser(
        "run",
        help="Run a module in a machine and restart it when its files change",
        epilog="Runs until Ctrl-C. Exit status: 1 if the server exits, 2 if the module does not "
        "exist or an installed package hides it, 130 after Ctrl-C.",
    )
    run.add_argument(
        "path",
        metavar="DIR|FILE",
        nargs="?",
        default=".",
        help="the module (default: the current directory)",
    )
    run.add_argument(
        "--config",
        metavar="FILE",
        help="configuration of the machine (default: DIR/machine.json, or a generated one)",
    )
    run.add_argument(
        "--port", type=parse_port_argument, help="port to listen on (default: 8080, or a free port)"
    )
    run.set_defaults(run="cogwork.cli.module_run:run")


def _add_module_restart(commands: Subparsers) -> None:
    restart = commands.add_parser(
        "restart",
        help="Restart a module of a running machine",
        epilog="Exit status: 0 if the module is ready, 1 if not, 2 if it is not configured or the "
        "machine cannot be reached.",
    )
    restart.add_argument("name", metavar="NAME", help="name of the module in the configuration")
    add_json_option(restart)
    add_address_option(restart)
    restart.set_defaults(run="cogwork.cli.module_restart:restart")
