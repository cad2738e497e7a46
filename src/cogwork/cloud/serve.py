"""Serve a cloud from its directory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import Final, NamedTuple

from cogwork import __version__
from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
from cogwork.cloud.control_plane.key_watcher import INTERVAL as KEY_INTERVAL
from cogwork.cloud.control_plane.key_watcher import KeyWatcher
from cogwork.cloud.control_plane.open_cloud import open_cloud
from cogwork.cloud.control_plane.periodic_task import PeriodicTask, PeriodicTasks
from cogwork.cloud.http import create_app
from cogwork.cloud.identity.public_name import PublicName
from cogwork.cloud.machine.log_quota import LogRates
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.registry.blob_sweep import sweep_blobs
from cogwork.cloud.signaling.relay_servers import NO_RELAYS, RelayServers
from cogwork.cloud.updates.rollout_supervisor import review_rollouts
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.front.connections import ConnectionLimits
from cogwork.net.address import Address
from cogwork.serving.certificate_watcher import CertificateFiles, CertificateWatcher
from cogwork.serving.listen_addresses import ListenAddresses, format_serving_line
from cogwork.serving.listeners import Listeners
from cogwork.serving.log import ServerLog
from cogwork.serving.process import dump_stacks_on_signal
from cogwork.serving.shutdown import Shutdown
from cogwork.serving.socket_directory import private_directory, remove_directory
from cogwork.wire.table.request_limits import MAX_UPLOAD_SIZE
from cogwork.wire.transports.grpc_options import CLOUD_SERVER_KEEPALIVE

EXIT_OK: Final = 0
EXIT_FAILURE: Final = 1
_CONNECTIONS: Final = ConnectionLimits(total=20_000, per_host=19_000)
"""Limits on connections. One address may have many: a machine has two connections, and all machines
behind one router share an address."""

_HOUR: Final = 3600.0
_MINUTE: Final = 60.0

_log = logging.getLogger("cloud")


class PlaintextRefused(CogworkError):
    """Keys would be sent without encryption."""


class CloudServeOptions(NamedTuple):
    address: Address
    certificate: CertificateFiles | None = None
    allow_plaintext: bool = False
    """Whether a proxy in front of the cloud encrypts the connections."""
    public_address: str = ""
    """The address for machines and clients, if it differs from the listening address."""
    relays: RelayServers = NO_RELAYS
    proxies: tuple[str, ...] = ()
    """The networks of proxies that may report the addresses of their clients."""
    log_rates: LogRates | None = None
    """The log rates of a part; None for the defaults."""


async def serve(
    directory: CloudDirectory, options: CloudServeOptions, clock: Clock, log: ServerLog
) -> int:
    """Serve until a stop is requested. Return the exit code."""
    shutdown = Shutdown()
    shutdown.install_signal_handlers()
    dump_stacks_on_signal()
    with private_directory() as sockets:
        shutdown.on_forced_exit(lambda: remove_directory(sockets))
        async with contextlib.AsyncExitStack() as stack:
            try:
                await _start(directory, options, clock, log, sockets, stack)
            except CogworkError as error:
                _log.error("%s", error)
                shutdown.fail("startup failed")
            _log.info("stopping: %s", await shutdown.requested)
    shutdown.limit_exit_time()
    return EXIT_FAILURE if shutdown.failed else EXIT_OK


async def _start(
    directory: CloudDirectory,
    options: CloudServeOptions,
    clock: Clock,
    log: ServerLog,
    sockets: Path,
    stack: contextlib.AsyncExitStack,
) -> None:
    """Start all services, and push their cleanup on the stack."""
    _check_confidential(options)
    is_encrypted = options.certificate is not None or options.allow_plaintext
    name = PublicName(
        directory.read_domain(), options.public_address or str(options.address), is_encrypted
    )
    plane = await stack.enter_async_context(
        open_cloud(directory, name, clock, options.relays, options.log_rates)
    )
    listeners = Listeners(
        plane.table,
        lambda: create_app(plane),
        sockets,
        connections=_CONNECTIONS,
        max_request_size=MAX_UPLOAD_SIZE,
        keepalive=CLOUD_SERVER_KEEPALIVE,
    )
    stack.push_async_callback(listeners.aclose)
    certificate = CertificateWatcher(sockets, clock, listeners.use_tls, lambda _: None)
    await certificate.load(options.certificate)
    await listeners.start(ListenAddresses(options.address, None, (), proxies=options.proxies))
    _log.info("cogwork-cloud %s serves the cloud in %s", __version__, directory.path)
    log.print_line(
        format_serving_line(
            listeners.addresses, options.address, is_encrypted=certificate.is_in_use
        )
    )
    for work in (certificate.watch(), log.pipeline.flush_periodically()):
        task = asyncio.create_task(work)
        stack.push_async_callback(_cancel, task)
    tasks = PeriodicTasks(clock, plane.health)
    stack.push_async_callback(tasks.aclose)
    keys = KeyWatcher(plane.context, directory)
    tasks.start(
        *list_maintenance(plane.context),
        PeriodicTask("following the keys of the cloud", keys.refresh, KEY_INTERVAL),
    )


def list_maintenance(context: CloudContext) -> list[PeriodicTask]:
    """Return the periodic tasks of a cloud."""
    return [
        PeriodicTask(
            "removing logs that are over their time",
            lambda: context.logs.expire(context.now()),
            _HOUR,
        ),
        PeriodicTask("deleting unused packages", lambda: sweep_blobs(context), _HOUR),
        PeriodicTask("supervising rollouts", lambda: review_rollouts(context), _MINUTE),
    ]


def _check_confidential(options: CloudServeOptions) -> None:
    is_confidential = options.certificate is not None or options.address.is_loopback
    if not is_confidential and not options.allow_plaintext:
        raise PlaintextRefused(
            f"keys would be sent unencrypted to {options.address}; give --tls-cert and --tls-key, "
            "or --allow-plaintext behind a proxy that encrypts"
        )


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
