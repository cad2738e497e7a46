"""The parsers of commands that work on a machine's computer: `tunnel`, `shell` and `copy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.cli.parsers.options import add_address_option, parse_port_argument

if TYPE_CHECKING:
    from cogwork.cli.parsers.options import Subparsers


def add_tunnel(commands: Subparsers) -> None:
    tunnel = commands.add_parser(
        "tunnel",
        help="Forward a machine's port to this computer",
        epilog="Runs until Ctrl-C. Exit status: 2 if the tunnel does not exist or the machine "
        "cannot be reached, 130 after Ctrl-C.",
    )
    tunnel.add_argument(
        "port",
        metavar="PORT",
        nargs="?",
        type=parse_port_argument,
        help="port of the machine, e.g. 22; omit it to list the available ports",
    )
    tunnel.add_argument(
        "--local",
        metavar="PORT",
        type=parse_port_argument,
        help="local port to listen on (default: PORT, or any free port)",
    )
    tunnel.add_argument("--json", action="store_true", help="list the ports as JSON")
    add_address_option(tunnel)
    tunnel.set_defaults(run="cogwork.cli.tunnel:tunnel")


def add_shell(commands: Subparsers) -> None:
    shell = commands.add_parser(
        "shell",
        help="Open a shell on a machine",
        epilog="Exit status: 0 when the shell exits or Ctrl-] is pressed, 1 if the shell fails, 2 "
        "if the machine has no shell or cannot be reached.",
    )
    shell.add_argument("--name", help="shell service (default: the only one)")
    add_address_option(shell)
    shell.set_defaults(run="cogwork.cli.shell:shell")


def add_copy(commands: Subparsers) -> None:
    copy = commands.add_parser(
        "copy",
        help="Copy files to or from a machine",
        epilog="Write machine:PATH for a path on the machine. Exit status: 0 if all files were "
        "copied, 1 if a file cannot be copied, 2 if a file to send does not exist, or if the "
        "machine has no shell or cannot be reached.",
    )
    copy.add_argument("sources", metavar="FROM", nargs="+", help="source, e.g. notes.txt")
    copy.add_argument("destination", metavar="TO", help="destination, e.g. machine:notes.txt")
    copy.add_argument("-r", "--recursive", action="store_true", help="copy directories")
    copy.add_argument(
        "-p", "--preserve", action="store_true", help="preserve permissions and times"
    )
    copy.add_argument("--name", help="shell service (default: the only one)")
    add_address_option(copy)
    copy.set_defaults(run="cogwork.cli.copy:copy")
