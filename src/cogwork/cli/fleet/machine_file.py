"""The configuration file with which a machine joins its cloud."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from cogwork.cli.fleet.stored_login import FleetLogin
from cogwork.core.address import is_loopback


def render_machine_file(part_id: str, secret: str, login: FleetLogin) -> str:
    """Return the file. Everything else comes from the cloud once the machine runs."""
    cloud = {"id": part_id, "secret": secret, "app_address": login.url}
    return json.dumps({"cloud": cloud}, indent=2) + "\n"


def render_instructions(file: str, login: FleetLogin) -> str:
    """Return what to do on the computer of the machine."""
    command = f"cogwork-server -config {shlex.quote(Path(file).name)}"
    copied = file
    if not login.is_encrypted and not is_loopback(login.host):
        command += " -allow-insecure-creds"
    if login.authority is not None:
        copied = f"{file} and {login.authority}"
        command = f"SSL_CERT_FILE={login.authority.name} {command}"
    return f"Copy {copied} to the machine, and run there:\n  {command}"
