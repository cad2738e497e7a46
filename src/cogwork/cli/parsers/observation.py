"""The commands that show the state of a machine: `status`, `logs`, `graph` and `find`."""

from __future__ import annotations

from cogwork.cli.parsers.options import FOLLOW, JSON, JSON_LINES, add_address_option
from cogwork.core.command_line import command, option, switch

STATUS = command(
    "status",
    "Show a machine's status",
    "cogwork.cli.machine.status:status",
    add_address_option,
    JSON,
    switch("--unhealthy", "show only what needs attention, with the reasons"),
    option(
        "--history",
        "RESOURCE",
        "show the history of one resource, or of the whole machine",
        nargs="?",
        const="",
    ),
    epilog="Exit status: 0 if every resource is ready, no process has failed and the "
    "configuration file has no errors, 1 if not or if a server of another make does not tell its "
    "states, 2 if the machine cannot be reached, or has no such RESOURCE. --unhealthy does not "
    "change it.",
)
LOGS = command(
    "logs",
    "Show a machine's log",
    "cogwork.cli.machine.logs:logs",
    add_address_option,
    option("--level", "LEVEL", "minimum level: debug, info, warn or error"),
    option(
        "--logger",
        "PATTERN",
        "show only matching loggers, e.g. 'rdk.resource_manager.*belt'",
    ),
    option("--text", "TEXT", "show only lines that contain TEXT"),
    option("--since", "WHEN", "show lines since WHEN, e.g. 10m or 2026-11-15T14:02"),
    FOLLOW,
    JSON_LINES,
    epilog="Exit status: 0, 2 if the machine cannot be reached, 130 after Ctrl-C.",
)
GRAPH = command(
    "graph",
    "Draw a machine's resource graph",
    "cogwork.cli.machine.status:graph",
    add_address_option,
    option(
        "--format",
        None,
        "output format (default: text); svg needs Graphviz",
        choices=("text", "dot", "svg"),
    ),
    option("-o, --output", "FILE", "write to FILE; .dot, .svg, .png and .pdf set the format"),
    switch("--json", "print JSON: the resources, each with what it depends on"),
    epilog="Exit status: 0, 2 if the machine cannot be reached, the file cannot be written or "
    "Graphviz is missing.",
)
FIND = command(
    "find",
    "Find machines on the local network",
    "cogwork.cli.machine.find:find",
    option(
        "--seconds",
        "SECONDS",
        "how long to wait for answers (default: 1.5)",
        parse=float,
        default=1.5,
    ),
    JSON,
    epilog="Exit status: 0 if machines were found, 1 if none answered.",
)
