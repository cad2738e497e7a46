"""The commands that work on a machine's computer: `tunnel`, `shell` and `copy`."""

from __future__ import annotations

from cogwork.cli.parsers.options import add_address_option, parse_port_argument
from cogwork.core.command_line import argument, command, option, switch

_SHELL_NAME = option("--name", "NAME", "shell service (default: the only one)")

TUNNEL = command(
    "tunnel",
    "Forward a machine's port to this computer",
    "cogwork.cli.machine.tunnel:tunnel",
    argument(
        "PORT",
        "port of the machine, e.g. 22; omit it to list the available ports",
        nargs="?",
        parse=parse_port_argument,
    ),
    option(
        "--local",
        "PORT",
        "local port to listen on (default: PORT, or any free port)",
        parse=parse_port_argument,
    ),
    switch("--json", "list the ports as JSON"),
    add_address_option,
    epilog="Runs until Ctrl-C. Exit status: 2 if the tunnel does not exist or the machine cannot "
    "be reached, 130 after Ctrl-C.",
)
SHELL = command(
    "shell",
    "Open a shell on a machine",
    "cogwork.cli.machine.shell:shell",
    _SHELL_NAME,
    add_address_option,
    epilog="Exit status: 0 when the shell exits or Ctrl-] is pressed, 1 if the shell fails, 2 if "
    "the machine has no shell or cannot be reached.",
)
COPY = command(
    "copy",
    "Copy files to or from a machine",
    "cogwork.cli.machine.copy:copy",
    argument("FROM", "source, e.g. notes.txt", dest="sources", nargs="+"),
    argument("TO", "destination, e.g. machine:notes.txt", dest="destination"),
    switch("-r, --recursive", "copy directories"),
    switch("-p, --preserve", "preserve permissions and times"),
    _SHELL_NAME,
    add_address_option,
    epilog="Write machine:PATH for a path on the machine. Exit status: 0 if all files were copied, "
    "1 if a file cannot be copied, 2 if a file to send does not exist, or if the machine has no "
    "shell or cannot be reached.",
)
