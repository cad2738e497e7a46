"""Real proxies in front of a server, with the configurations of the guide."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from tests.docs.guide import File, parse_steps
from tests.support.media.rtsp_server import free_port
from tests.support.paths import REPOSITORY
from tests.support.waiting import pass_time

_GUIDE = REPOSITORY / "docs" / "guides" / "put-a-proxy-in-front.md"
_NGINX_HEAD = """daemon off;
error_log stderr;
pid {directory}/nginx.pid;
"""
_NGINX_PATHS = """http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
"""
DEADLINE = 30.0

needs_proxies = pytest.mark.skipif(
    not (shutil.which("haproxy") and shutil.which("nginx")), reason="needs haproxy and nginx"
)


@dataclass(frozen=True)
class Proxy:
    port: int
    authority: bytes
    """The certificate of the authority that clients must trust, as PEM."""

    def tls_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.authority.decode())


@contextlib.asynccontextmanager
async def run_proxy(kind: str, target: int, directory: Path) -> AsyncIterator[Proxy]:
    """Run `haproxy` or `nginx` in front of a port of this computer."""
    directory.mkdir()
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(directory / "fleet.pem")
    certificate.private_key_pem.write_to_path(directory / "fleet.key")
    port = free_port()
    name = "haproxy.cfg" if kind == "haproxy" else "nginx.conf"
    text = next(
        step.text for step in parse_steps(_GUIDE) if isinstance(step, File) and step.path == name
    )
    text = text.replace("127.0.0.1:8090", f"127.0.0.1:{target}")
    text = text.replace(f"/etc/{kind}/", f"{directory}/")
    text = text.replace("bind :443", f"bind 127.0.0.1:{port}")
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}")
    if kind == "nginx":
        text = _NGINX_HEAD.format(directory=directory) + text
        text = text.replace("http {\n", _NGINX_PATHS.format(directory=directory), 1)
    (directory / name).write_text(text)
    command = (
        ("haproxy", "-db", "-f", str(directory / name))
        if kind == "haproxy"
        else ("nginx", "-p", str(directory), "-e", "stderr", "-c", str(directory / name))
    )
    async with _run(command, port):
        yield Proxy(port, authority.cert_pem.bytes())


@contextlib.asynccontextmanager
async def _run(command: Sequence[str], port: int) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    reading = asyncio.ensure_future(process.stderr.read())
    try:
        async with asyncio.timeout(DEADLINE):
            while True:
                assert process.returncode is None, (await reading).decode()
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await pass_time(0.02)
                    continue
                writer.close()
                await writer.wait_closed()
                break
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        await reading
