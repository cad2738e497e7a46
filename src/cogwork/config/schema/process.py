"""The section `processes`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Duration, LongNameField, Section, fault
from cogwork.config.schema.module import ProgramLimits
from cogwork.core.signals import parse_signal


def _check_signal(value: str | int) -> str | int:
    try:
        parse_signal(value)
    except ValueError as error:
        raise fault(codes.BAD_VALUE, f'{error}; write a signal such as "SIGTERM" or 15') from None
    return value


class ProcessConfig(Section):
    """A program that runs alongside the machine: the server starts it, restarts it when it exits,
    and stops it."""

    id: LongNameField
    """The ID of the process."""
    name: Annotated[str, Field(min_length=1)]
    """The program to run: a path, or a name that is looked up in `PATH`. A relative path starts at
    `cwd`."""
    args: list[str] = []
    """The arguments of the program."""
    cwd: str = ""
    """The working directory. Defaults to the working directory of the server."""
    one_shot: bool = False
    """Whether to run the program only once, instead of restarting it when it exits. It runs again
    when its configuration changes, and when the server restarts."""
    username: str = ""
    """The user to run the program as, which requires a server that runs as root. Defaults to the
    user of the server."""
    env: dict[str, str] = {}
    """Variables to add to the program's environment."""
    log: bool = False
    """Whether to log the program's output. The last lines before a failure are always reported."""
    stop_signal: Annotated[str | int, AfterValidator(_check_signal)] = "SIGTERM"
    """The signal that stops the program, by name or number."""
    stop_timeout: Duration = 10.0
    """Timeout for the program to stop before it is killed. After a third of the time, its child
    processes get the signal, too."""
    limits: ProgramLimits | None = None
    """The resource limits of the process. Unlimited by default."""
    disabled: bool = False
    """Whether the process is disabled: it does not run."""
