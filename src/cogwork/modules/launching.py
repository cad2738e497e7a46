"""How a module is started, as its configuration says."""

from __future__ import annotations

import functools
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from cogwork.config.module import ModuleConfig
from cogwork.core.workers import in_a_thread
from cogwork.logs.levels import Level
from cogwork.modules.address import free_port, unix_address
from cogwork.modules.bundle import is_bundle, unpacked
from cogwork.modules.environment import module_argv, module_data, module_environment
from cogwork.modules.ground import Ground
from cogwork.modules.limits import Limits
from cogwork.modules.process import Launch
from cogwork.modules.program import CannotStart

_DISK = 10.0


def address_of(config: ModuleConfig, ground: Ground) -> str:
    """Another one for each start."""
    if config.tcp_mode:
        return f"127.0.0.1:{free_port()}"
    return unix_address(ground.sockets, config.name, secrets.token_hex(3))


async def launch_of(
    config: ModuleConfig, ground: Ground, address: str, level: Level, say: Callable[[str], None]
) -> Launch:
    """`level`: the lowest that it is to log. `say` hears how far it is, if it takes a while."""
    given = Path(os.path.expanduser(config.executable_path))  # noqa: PTH111, ASYNC240
    if is_bundle(given):
        folder, executable = await unpacked(config.name, given, ground.home, say, ground.clock)
    else:
        folder, executable = given.parent, given
    data = module_data(ground.home, ground.cloud.machine_part_id, config.name)
    await _make(data)
    environment = module_environment(
        ground.environment,
        name=config.name,
        module_id=config.module_id,
        home=ground.home,
        data=data,
        root=folder,
        address=address,
        configured=config.env,
        cloud=ground.cloud,
    )
    said = config.log_level or (level if level is Level.DEBUG else None)
    argv = module_argv(
        str(executable), address, said.name.lower() if said else None, config.tcp_mode
    )
    root = Path(environment.get("VIAM_MODULE_ROOT") or folder)
    return Launch(argv, environment, root, _limits(config))


async def _make(data: Path) -> None:
    make = functools.partial(data.mkdir, mode=0o750, parents=True, exist_ok=True)
    try:
        await in_a_thread(f"make {data}", _DISK, make)
    except TimeoutError:
        raise CannotStart(
            f"{data} cannot be made: the disk did not answer for {_DISK:g} s; check the disk"
        ) from None


def _limits(config: ModuleConfig) -> Limits:
    if config.limits is None:
        return Limits()
    return Limits(
        memory_bytes=int(config.limits.memory_mb * (1 << 20)) if config.limits.memory_mb else None,
        cpu_cores=config.limits.cpu_cores,
        open_files=config.limits.open_files,
        no_new_privileges=config.limits.no_new_privileges,
    )
