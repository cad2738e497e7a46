"""The command line of `cogwork-cloud serve`."""

from __future__ import annotations

import argparse
import ipaddress
import os
from pathlib import Path
from typing import Any, Final

from cogwork.cloud.commands.key_parser import AddData, cloud_directory
from cogwork.cloud.machine.log_quota import LINES_PER_SECOND
from cogwork.core.errors import CogworkError
from cogwork.net.address import Address
from cogwork.serving import process

_DEFAULT_ADDRESS: Final = "localhost:8090"
_MAX_LOG_QUOTA: Final = 1_000_000


def add_serve_parser(commands: Any, add_data: AddData) -> None:
    """Add the command. `add_data` adds the option for the directory of the cloud."""
    serve = commands.add_parser("serve", help="Serve the cloud")
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
    add_data(serve)


def _parse_network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is neither an IP address nor a network, such as 10.0.0.0/8"
        ) from None


def _parse_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0.001 <= rate <= _MAX_LOG_QUOTA:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a number of lines per second from 0.001 to {_MAX_LOG_QUOTA:,}'
        )
    return rate


def _serve(arguments: argparse.Namespace) -> int:
    if (arguments.tls_cert is None) != (arguments.tls_key is None):
        raise CogworkError("--tls-cert and --tls-key belong together; give both")
    process.prepare(os.environ)
    # Imported here, because these modules import grpc, and the process must be prepared before
    # that.
    from cogwork.cloud.machine.log_quota import part_rates
    from cogwork.cloud.serve import CloudServeOptions, serve
    from cogwork.cloud.signaling.relay_servers import read_relay_servers
    from cogwork.core.clock import SystemClock
    from cogwork.serving.certificate_watcher import CertificateFiles
    from cogwork.serving.log import ServerLog

    certificate = (
        CertificateFiles(arguments.tls_cert, arguments.tls_key)
        if arguments.tls_cert is not None
        else None
    )
    options = CloudServeOptions(
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
