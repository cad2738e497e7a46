"""Builds the launch specification of a module from its configuration."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable
from pathlib import Path

from cogwork.config.schema.module import ModuleConfig
from cogwork.core.files.atomic import make_directory
from cogwork.core.workers import run_in_thread
from cogwork.logs.levels import Level
from cogwork.modules.bundle import is_bundle, unpack_bundle
from cogwork.modules.context import ModuleContext
from cogwork.modules.environment import module_argv, module_data_directory, module_environment
from cogwork.net.local_address import free_port, unix_address
from cogwork.subprocesses.executable_check import CannotStart, Misconfigured
from cogwork.subprocesses.limits import make_limits
from cogwork.subprocesses.process import LaunchSpec
from cogwork.subprocesses.user_account import UserAccount, find_account, switch_user_command

_DISK_TIMEOUT = 10.0


def choose_address(config: ModuleConfig, folder: Path) -> str:
    """Return the address for one start of the module. Every start needs a different address."""
    if config.tcp_mode:
        return f"127.0.0.1:{free_port()}"
    return unix_address(folder, config.name, secrets.token_hex(3))


async def find_user(config: ModuleConfig) -> UserAccount | None:
    """Return the user to run the module as; None for the user of the server.

    Raise CannotStart, or Misconfigured if a retry is pointless.
    """
    if not config.username:
        return None
    try:
        account = await run_in_thread(
            f"find user {config.username}", _DISK_TIMEOUT, find_account, config.username
        )
    except TimeoutError:
        raise CannotStart(
            f'the user "{config.username}" was not found within {_DISK_TIMEOUT:g} s; check the '
            "directory service of this computer"
        ) from None
    return None if account.is_ours else account


async def make_launch_spec(
    config: ModuleConfig,
    context: ModuleContext,
    address: str,
    level: Level,
    log: Callable[[str], None],
    account: UserAccount | None,
) -> LaunchSpec:
    """Return the launch specification of a module.

    `level`: the lowest level to log. `log` receives the progress of unpacking. `account`: the user
    to run the module as; None for the user of the server.

    Raise CannotStart, or Misconfigured if a retry is pointless.
    """
    path = _find_executable(config)
    if is_bundle(path):
        if account is not None:
            raise Misconfigured(
                f'its archive is unpacked into a folder that user "{account.name}" cannot read; '
                "unpack it into another folder and set the path of the program there, or remove "
                '"username"'
            )
        folder, executable = await unpack_bundle(
            config.name, path, context.home, log, context.clock
        )
    else:
        folder, executable = path.parent, path
    home = context.home if account is None else _find_home(account, config) / ".cogwork"
    data = module_data_directory(home, context.cloud.machine_part_id, config.name)
    await _make_directory(data, account)
    environment = module_environment(
        context.environment,
        name=config.name,
        module_id=config.module_id,
        home=context.home,
        data=data,
        root=folder,
        address=address,
        configured=config.env,
        cloud=context.cloud,
        withheld=context.get_withheld_variables(),
        clean=config.environment == "clean",
    )
    log_level = level if config.log_level or level is Level.DEBUG else None
    argv = module_argv(
        str(executable), address, log_level.name.lower() if log_level else None, config.tcp_mode
    )
    root = Path(environment.get("VIAM_MODULE_ROOT") or folder)
    if account is not None:
        environment = {**environment, **account.environment, **config.env}
    return LaunchSpec(argv, environment, root, make_limits(config.limits), account)


def _find_executable(config: ModuleConfig) -> Path:
    """Return the absolute path of the program or archive. Raise Misconfigured."""
    if not config.executable_path:
        raise Misconfigured(
            'it has no "executable_path"; set the path of its program or archive, or join a cloud '
            "whose registry has the module"
        )
    path = Path(os.path.expanduser(config.executable_path))  # noqa: PTH111
    if not path.is_absolute():
        raise Misconfigured(
            f'its "{config.program_key}" is "{config.executable_path}"; write the absolute path'
        )
    return path


def _find_home(account: UserAccount, config: ModuleConfig) -> Path:
    return Path(config.env.get("HOME", account.home))


async def _make_directory(data: Path, account: UserAccount | None) -> None:
    def make() -> None:
        if account is None:
            make_directory(data, 0o750)
            return
        # Run mkdir as the user of the module: links in the user's home may lead outside, and root
        # would follow them.
        command = (*switch_user_command(account), "mkdir", "-p", "-m", "750", str(data))
        made = subprocess.run(  # noqa: S603 - a program and a path, no shell
            command,
            env=account.environment,  # the environment of the server contains secrets
            check=False,
            capture_output=True,
            text=True,
            timeout=_DISK_TIMEOUT,
        )
        if made.returncode:
            raise CannotStart(
                f'the user "{account.name}" cannot create the folder for the data of the module '
                f'({made.stderr.strip()}); set HOME in the "env" of the module to a folder of '
                "this user"
            )

    try:
        await run_in_thread(f"make {data}", _DISK_TIMEOUT, make)
    except TimeoutError:
        raise CannotStart(
            f"cannot create {data}: the disk did not respond for {_DISK_TIMEOUT:g} s; check the "
            "disk"
        ) from None
