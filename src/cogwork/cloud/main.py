"""`cogwork-cloud`: create a fleet cloud, serve it, keep it safe, update its machines."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cogwork import __version__
from cogwork.cloud.key_parser import add_key_parser, cloud_directory
from cogwork.cloud.machine.log_quota import LINES_PER_SECOND
from cogwork.cloud.updates.release_parser import add_release_parser
from cogwork.core.cut_output import run_until_cut_off
from cogwork.core.errors import CogworkError
from cogwork.core.paths import cogwork_home
from cogwork.net.address import Address
from cogwork.serving import process

EXIT_OK = 0
EXIT_FAILURE = 1
_DEFAULT_ADDRESS = "localhost:8090"
_MAX_LOG_QUOTA = 1_000_000


def main(argv: Sequence[str] | None = None) -> int:
    return run_until_cut_off(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    arguments = build_parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except CogworkError as error:
        print(f"cogwork-cloud: {error}", file=sys.stderr)
        return EXIT_FAILURE


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "cogwork-cloud", description="Host a fleet of machines: their configurations and logs."
    )
    parser.add_argument("--version", action="version", version=f"cogwork-cloud {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    init = commands.add_parser("init", help="create a cloud, and print the key of its first owner")
    init.add_argument(
        "--domain",
        default="localhost",
        help="the names of machines end with it (default: localhost)",
    )
    init.add_argument(
        "--organization", default="Main", metavar="NAME", help="the first organization"
    )
    init.set_defaults(run=_init)
    serve = commands.add_parser("serve", help="serve the cloud")
    serve.add_argument(
        "--address",
        type=Address.parse,
        default=_DEFAULT_ADDRESS,
        metavar="HOST:PORT",
        help=f"where to listen (default: {_DEFAULT_ADDRESS})",
    )
    serve.add_argument(
        "--public-address",
        default="",
        metavar="HOST:PORT",
        help="where machines reach the cloud, if not at --address",
    )
    serve.add_argument("--tls-cert", type=Path, metavar="FILE", help="the certificate, as PEM")
    serve.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key, as PEM")
    serve.add_argument(
        "--allow-plaintext",
        action="store_true",
        help="serve other computers without TLS, behind a proxy that encrypts",
    )
    serve.add_argument(
        "--trusted-proxy",
        action="append",
        default=[],
        type=_parse_network,
        metavar="NETWORK",
        help="the address or network of a proxy in front of the cloud, such as 127.0.0.1 or "
        "10.0.0.0/8, whose headers tell the addresses of clients (PROXY protocol, Forwarded or "
        "X-Forwarded-For); give it again for more (default: none)",
    )
    serve.add_argument(
        "--turn-url",
        action="append",
        default=[],
        metavar="URL",
        help="a TURN server for connections to machines, such as turn:turn.example:3478; give it "
        "again for more (default: none)",
    )
    serve.add_argument(
        "--turn-secret-file",
        type=Path,
        metavar="FILE",
        help="the secret that the TURN servers share (static-auth-secret of coturn)",
    )
    serve.add_argument(
        "--log-quota",
        type=_parse_rate,
        default=LINES_PER_SECOND,
        metavar="LINES",
        help="lines of its log that a part may send each second, on average over hours (default: "
        f"{LINES_PER_SECOND:g}); an organization may send 50 times as many",
    )
    serve.set_defaults(run=_serve)
    usage = commands.add_parser(
        "usage", help="show the stored logs of each machine, and how many lines were lost"
    )
    usage.add_argument("--json", action="store_true", help="print JSON, with every day")
    usage.set_defaults(run=_usage)
    backup = commands.add_parser(
        "backup", help="copy the records to a file, also while the cloud is served"
    )
    backup.add_argument("file", type=Path, metavar="FILE", help="where to write the copy")
    backup.set_defaults(run=_backup)
    restore = commands.add_parser("restore", help="replace the records by a copy")
    restore.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="a copy of `cogwork-cloud backup`; without it, the records were restored by other "
        "means, such as a snapshot of the disk",
    )
    restore.set_defaults(run=_restore)
    repair = commands.add_parser("repair", help="repair a cloud whose root key is lost")
    repair.add_argument(
        "--new-root-key",
        action="store_true",
        required=True,
        help="make a new root key, and new keys of the cloud",
    )
    repair.set_defaults(run=_repair)
    for each in (init, serve, usage, backup, restore, repair):
        _add_data_option(each)
    add_key_parser(commands, _add_data_option)
    add_release_parser(commands, _add_data_option)
    return parser


def _parse_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0.001 <= rate <= _MAX_LOG_QUOTA:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a number of lines from 0.001 to {_MAX_LOG_QUOTA:,}'
        )
    return rate


def _add_data_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        default=cogwork_home(os.environ) / "cloud",
        metavar="DIRECTORY",
        help="where the cloud is kept (default: %(default)s)",
    )


def _parse_network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is neither an IP address nor a network, such as 10.0.0.0/8"
        ) from None


def _init(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.cloud_directory import check_domain
    from cogwork.cloud.create_cloud import create_cloud
    from cogwork.core.clock import SystemClock

    directory, domain = cloud_directory(arguments), check_domain(arguments.domain)
    new = create_cloud(directory, domain, arguments.organization, SystemClock())
    print(f"""Created a cloud in {directory.path}.

The key of its first owner, which is shown only once:
  key ID: {new.key_id}
  key:    {new.key}

Serve it:
  cogwork-cloud serve --data {directory.path}""")
    return EXIT_OK


def _serve(arguments: argparse.Namespace) -> int:
    if (arguments.tls_cert is None) != (arguments.tls_key is None):
        raise CogworkError("--tls-cert and --tls-key belong together; give both")
    process.prepare(os.environ)
    # These import grpc, which must not happen before the process is prepared.
    from cogwork.cloud.machine.log_quota import part_rates
    from cogwork.cloud.serve import ServeOptions, serve
    from cogwork.cloud.signaling.relay_servers import read_relay_servers
    from cogwork.core.clock import SystemClock
    from cogwork.serving.certificate_watcher import CertificateFiles
    from cogwork.serving.log import ServerLog

    certificate = (
        CertificateFiles(arguments.tls_cert, arguments.tls_key)
        if arguments.tls_cert is not None
        else None
    )
    options = ServeOptions(
        arguments.address,
        certificate,
        arguments.allow_plaintext,
        arguments.public_address,
        read_relay_servers(arguments.turn_url, arguments.turn_secret_file),
        tuple(arguments.trusted_proxy),
        part_rates(arguments.log_quota),
    )
    clock = SystemClock()
    log = ServerLog(clock, process.STDOUT, os.environ)
    log.open()
    try:
        return process.run(serve(cloud_directory(arguments), options, clock, log))
    finally:
        log.close()


def _usage(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.log_usage import format_table, report_usage, select_parts
    from cogwork.cloud.machine.log_losses import list_losses
    from cogwork.cloud.storage.log_store import LogUsage
    from cogwork.cloud.storage.sqlite_log_store import SqliteLogStore
    from cogwork.cloud.storage.sqlite_records import read_records
    from cogwork.core.clock import SystemClock

    directory, now = cloud_directory(arguments), int(SystemClock().time() * 1e6)
    directory.require_current()

    async def measure() -> Sequence[LogUsage]:
        logs = SqliteLogStore(directory.logs)
        try:
            return await logs.measure(now)
        finally:
            await logs.aclose()

    # Before the parts are read, because each part of the log must be among them.
    stored = asyncio.run(measure())
    losses, parts = read_records(directory.records, lambda tx: (list_losses(tx), select_parts(tx)))
    found = report_usage(stored, losses, parts, now)
    if arguments.json:
        print(json.dumps([each.as_json() for each in found], indent=2))
    else:
        print(format_table(found))
    return EXIT_OK


def _backup(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.backup import back_up

    directory = cloud_directory(arguments)
    back_up(directory, arguments.file)
    print(f"copied the records to {arguments.file}; keep the root key elsewhere")
    return EXIT_OK


def _restore(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.backup import restore
    from cogwork.core.clock import SystemClock

    replaced = restore(cloud_directory(arguments), arguments.file, SystemClock())
    if replaced is not None:
        print(f"restored the records; the former ones are {replaced}")
    print(
        "For 24 hours, machines whose login fails are asked to try again instead of being refused."
    )
    print(
        "Keys and roles that were taken away after the backup are valid again: delete them again."
    )
    return EXIT_OK


def _repair(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.backup import renew_root_key
    from cogwork.core.clock import SystemClock

    directory = cloud_directory(arguments)
    renew_root_key(directory, SystemClock())
    print(
        "Made a new root key and new keys. Keys and secrets work as before, but cannot be shown "
        "again. Tokens end, so restart programs that use the cloud. Give clients the new "
        f"{directory.authorities}."
    )
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
