"""Addresses to listen on, as the computer resolves them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

LISTEN_WITHOUT_HOSTS = """
mount --bind /dev/null /etc/hosts && mount --bind /dev/null /etc/resolv.conf && exec "$@"
"""
LISTEN = """
import asyncio
from cogwork.net.listen_sockets import open_listeners, resolve_addresses
listeners = open_listeners(asyncio.run(resolve_addresses("localhost", 0)))
print(listeners[0].getsockname()[0])
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare"
)
def test_localhost_needs_no_hosts_file() -> None:
    done = subprocess.run(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            LISTEN_WITHOUT_HOSTS,
            "sh",
            sys.executable,
            "-c",
            LISTEN,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "mount: " in done.stderr:
        pytest.skip(f"cannot mount here: {done.stderr}")
    assert (done.stdout, done.stderr) == ("127.0.0.1\n", "")
