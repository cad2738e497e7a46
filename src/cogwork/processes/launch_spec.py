"""Builds the launch specification of a process from its configuration."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from cogwork.config.schema.process import ProcessConfig
from cogwork.processes.context import ProcessContext
from cogwork.subprocesses.environment import HOME_VARIABLE, inherited_environment
from cogwork.subprocesses.executable_check import CannotStart
from cogwork.subprocesses.limits import make_limits
from cogwork.subprocesses.process import LaunchSpec
from cogwork.subprocesses.user_account import UserAccount, find_account

_SEARCH_TIMEOUT = 10.0


async def make_launch_spec(config: ProcessConfig, context: ProcessContext) -> LaunchSpec:
    """Find the program and the user. Raise CannotStart or Misconfigured."""
    name = f"find program {config.id}"
    try:
        return await context.programs.run_in_thread(
            name, _SEARCH_TIMEOUT, _make_launch_spec, config, context
        )
    except TimeoutError:
        raise CannotStart(
            f'"{config.name}" or its user was not found within {_SEARCH_TIMEOUT:g} s; check the '
            "disks and the directory service of this computer"
        ) from None


def _make_launch_spec(config: ProcessConfig, context: ProcessContext) -> LaunchSpec:
    account = find_account(config.username) if config.username else None
    environment = _make_environment(config, context, account)
    directory = _find_directory(config.cwd, environment)
    program = _find_program(config.name, directory, environment)
    return LaunchSpec(
        (program, *config.args),
        environment,
        directory,
        make_limits(config.limits),
        account if account is not None and not account.is_ours else None,
    )


def _make_environment(
    config: ProcessConfig, context: ProcessContext, account: UserAccount | None
) -> dict[str, str]:
    withheld = context.get_withheld_variables()
    return {
        **inherited_environment(context.environment, withheld=withheld),
        **(account.environment if account is not None else {}),
        # If this server is killed, the next one finds the leftover processes by this variable.
        HOME_VARIABLE: str(context.home),
        **config.env,
    }


def _find_directory(text: str, environment: Mapping[str, str]) -> Path:
    return Path.cwd() / _expand_home(text, environment)


def _find_program(text: str, directory: Path, environment: Mapping[str, str]) -> str:
    name = _expand_home(text, environment)
    if "/" in name:
        return str(directory / name)
    found = shutil.which(name, path=environment.get("PATH", os.defpath))
    if found is None:
        raise CannotStart(
            f'program "{name}" was not found in PATH; install it, or write its absolute path'
        )
    return str(directory / found)


def _expand_home(text: str, environment: Mapping[str, str]) -> str:
    """Replace a leading `~` by the home of the user that the program runs as."""
    first, slash, rest = text.partition("/")
    if first != "~" or not (home := environment.get("HOME")):
        return text
    return f"{home}{slash}{rest}"
