"""The commands of `cogwork-agent`. Each command imports its modules when it runs, so that --help
and the other commands start fast."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Final

from cogwork.core.errors import CogworkError

EXIT_OK: Final = 0
DEFAULT_USER: Final = "cogwork"
DEFAULT_CONFIG: Final = Path("/etc/cogwork/machine.json")
"""The default path. The file has its own directory, so that the user of the server may replace the
file."""


def run(arguments: argparse.Namespace) -> int:
    from cogwork.agent.agent import run_agent
    from cogwork.agent.settings import load_settings
    from cogwork.agent.slots.layout import Layout
    from cogwork.core.clock import SystemClock

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.INFO)
    layout = Layout(arguments.root.absolute())
    return asyncio.run(run_agent(layout, load_settings(layout.settings), SystemClock()))


def add(arguments: argparse.Namespace) -> int:
    from cogwork.agent.release.signature import TrustedKeys
    from cogwork.agent.slots.installer import Installer
    from cogwork.agent.slots.layout import Layout

    layout = Layout(arguments.root.absolute())
    installer = Installer(layout, TrustedKeys.load(layout.keys))
    for release in arguments.release:
        manifest = installer.install(release, lambda step: print(f"{step} …", file=sys.stderr))
        product, version = manifest.product, manifest.version
        if layout.current_version(product) is None:
            layout.switch(product, version)
            print(f"{product} {version} is installed, and current")
        else:
            print(f"{product} {version} is installed")
    return EXIT_OK


def trust(arguments: argparse.Namespace) -> int:
    from cogwork.agent.release.signature import parse_public_key
    from cogwork.agent.slots.layout import Layout
    from cogwork.core.files import atomic

    data = arguments.key.read_bytes()
    try:
        parse_public_key(data)
    except ValueError as error:
        raise CogworkError(f"{arguments.key} is not a public key: {error}") from None
    layout = Layout(arguments.root.absolute())
    atomic.make_directory(layout.keys)
    path = layout.keys / f"{arguments.key.stem}.pem"
    atomic.write(path, data, 0o644)
    print(f"Releases that {arguments.key} has signed may be installed. To undo it:\n  rm {path}")
    return EXIT_OK


def status(arguments: argparse.Namespace) -> int:
    from cogwork.agent.slots.layout import Layout
    from cogwork.agent.status import format_status, read_status

    status = read_status(Layout(arguments.root.absolute()))
    print(json.dumps(status, indent=2) if arguments.json else format_status(status))
    return EXIT_OK


def retry(arguments: argparse.Namespace) -> int:
    from cogwork.agent.slots.layout import Layout
    from cogwork.agent.status import list_failed

    layout = Layout(arguments.root.absolute())
    failed = list_failed(layout)
    if not failed:
        print("no version has failed")
        return EXIT_OK
    layout.retry.touch(0o644)
    print(f"the agent tries again within a minute, if it is still wanted: {', '.join(failed)}")
    return EXIT_OK


def allow(arguments: argparse.Namespace) -> int:
    from cogwork.agent.release.manifest import is_version
    from cogwork.agent.slots.layout import Layout
    from cogwork.agent.slots.minimum_store import MinimumStore
    from cogwork.core.files import atomic
    from cogwork.core.versions.product import Product
    from cogwork.core.versions.version_order import is_older

    product, version = Product(arguments.product), arguments.version
    if not is_version(version):
        raise CogworkError(f'"{version}" is not a version')
    layout = Layout(arguments.root.absolute())
    minimum = MinimumStore(layout.minimums).find(product)
    if minimum is not None and is_older(version, minimum.version):
        raise CogworkError(f"{product} {version} is not allowed: {minimum.explain()}")
    atomic.write(layout.allowed(product), f"{version}\n".encode(), 0o644)
    print(f"the agent takes {product} {version} once it is offered, even if it has a newer one")
    return EXIT_OK


def install(arguments: argparse.Namespace) -> int:
    from cogwork.agent.installation.agent_installer import AgentInstaller
    from cogwork.agent.settings import AgentSettings
    from cogwork.agent.slots.layout import Layout
    from cogwork.systemd.systemctl import Systemctl

    _require_root("install")
    layout = Layout(arguments.root.absolute())
    settings = AgentSettings(config=_find_config(arguments), updates=arguments.updates)
    user = arguments.user or _find_user()
    # Exit with an exception on SIGTERM, so that `install` starts the replaced service again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    installer = AgentInstaller(layout, settings, user, Systemctl(), _print_line)
    installer.install(arguments.release, arguments.key)
    return EXIT_OK


def _find_user() -> str:
    from cogwork.agent.installation.units import read_user
    from cogwork.agent.supervision.systemd_server import SERVICE, UNITS

    try:
        return read_user((UNITS / SERVICE).read_text(errors="replace")) or DEFAULT_USER
    except OSError:
        return DEFAULT_USER


def uninstall(arguments: argparse.Namespace) -> int:
    from cogwork.agent.errors import BadSettings
    from cogwork.agent.installation.agent_remover import AgentRemover
    from cogwork.agent.slots.layout import Layout
    from cogwork.systemd.systemctl import Systemctl

    _require_root("uninstall")
    try:
        config = _find_config(arguments)
    except BadSettings:
        config = (arguments.config or DEFAULT_CONFIG).absolute()
    layout = Layout(arguments.root.absolute())
    remover = AgentRemover(layout, config, Systemctl(), _print_line)
    remover.uninstall(purge=arguments.purge)
    return EXIT_OK


def join(arguments: argparse.Namespace) -> int:
    from cogwork.agent.joining import redeem, write_credentials

    path = _find_config(arguments)
    write_credentials(path, redeem(arguments.url, arguments.code))
    print(f"Joined. The credentials are in {path}; a server that runs with it joins by itself.")
    return EXIT_OK


def _find_config(arguments: argparse.Namespace) -> Path:
    """Return the configuration in the arguments or in the settings. Raise BadSettings."""
    from cogwork.agent.settings import load_settings
    from cogwork.agent.slots.layout import Layout

    settings = load_settings(Layout(arguments.root.absolute()).settings)
    return settings.config if arguments.config is None else arguments.config.absolute()


def _print_line(line: str) -> None:
    print(line, flush=True)


def _require_root(command: str) -> None:
    if os.geteuid() != 0:
        from cogwork.agent.slots.interpreter import IS_PACKED

        program = "cogwork-agent" if IS_PACKED else f"{sys.executable} -m cogwork.agent.main"
        raise CogworkError(
            f"{command} needs the rights of root; run: sudo {program} {' '.join(sys.argv[1:])}"
        )
