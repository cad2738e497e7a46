"""Build the launch specification of a module from its configuration."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from cogwork.config.module import ModuleConfig
from cogwork.core.atomic import make_directory
from cogwork.core.workers import run_in_thread
from cogwork.logs.levels import Level
from cogwork.modules.address import free_port, unix_address
from cogwork.modules.bundle import is_bundle, unpack_bundle
from cogwork.modules.context import ModuleContext
from cogwork.modules.environment import module_argv, module_data_directory, module_environment
from cogwork.programs.executable_check import CannotStart, Misconfigured
from cogwork.programs.limits import make_limits
from cogwork.programs.process import LaunchSpec

_DISK_TIMEOUT = 10.0


def choose_address(config: ModuleConfig, context: ModuleContext) -> str:
    """Return an address that is unique for each start."""
    if config.tcp_mode:
        return f"127.0.0.1:{free_port()}"
    return unix_address(context.socket_directory, config.name, secrets.token_hex(3))


async def make_launch_spec(
    config: ModuleConfig,
    context: ModuleContext,
    address: str,
    level: Level,
    log: Callable[[str], None],
) -> LaunchSpec:
    """`level`: the lowest level to log. `log` gets the progress of unpacking.

    Raises CannotStart, and Misconfigured if another attempt is pointless.
    """
    path = _find_executable(config)
    if is_bundle(path):
        folder, executable = await unpack_bundle(
            config.name, path, context.home, log, context.clock
        )
    else:
        folder, executable = path.parent, path
    data = module_data_directory(context.home, context.cloud.machine_part_id, config.name)
    await _make_directory(data)
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
    return LaunchSpec(argv, environment, root, make_limits(config.limits))


def _find_executable(config: ModuleConfig) -> Path:
    """Return the absolute path of the program or archive. Raises Misconfigured."""
    if not config.executable_path:
        raise Misconfigured(
            'it has no "executable_path"; set the path of its program or archive, or join a cloud '
            "whose registry has the module"
        )
    path = Path(os.path.expanduser(config.executable_path))  # noqa: PTH111
    if not path.is_absolute():
        raise Misconfigured(
            f'its "executable_path" is "{config.executable_path}"; write the absolute path'
        )
    return path


async def _make_directory(data: Path) -> None:
    try:
        await run_in_thread(f"make {data}", _DISK_TIMEOUT, make_directory, data, 0o750)
    except TimeoutError:
        raise CannotStart(
            f"cannot create {data}: the disk did not respond for {_DISK_TIMEOUT:g} s; check the "
            "disk"
        ) from None
