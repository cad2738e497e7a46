"""The exit codes of all commands."""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

EXIT_CODES = {
    EXIT_OK: "success",
    EXIT_FAILURE: "the command ran, but its result is negative: a file has errors, a resource is "
    "not ready, a call failed",
    EXIT_USAGE: "the command could not be run: wrong usage, a file that cannot be read or written, "
    "a machine that cannot be reached, or a name that it does not have",
    EXIT_INTERRUPTED: "ended by Ctrl-C; other signals: 128 and the number of the signal",
}
