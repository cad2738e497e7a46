"""The configuration file with which a machine joins its cloud."""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.fleet.stored_login import FleetLogin
from cogwork.cli.terminal import print_error, print_text
from cogwork.core.os_error_text import write_reason
from cogwork.net.address import is_loopback
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

_DEFAULT_NAME = "machine.json"


@dataclass(frozen=True)
class MachineFile:
    """The configuration file of one part. All other settings come from the cloud at run time."""

    part: pb.RobotPart
    login: FleetLogin
    path: Path | None
    """The path of the file; None prints the file instead."""

    @property
    def text(self) -> str:
        cloud = {"id": self.part.id, "secret": self.part.secret, "app_address": self.login.url}
        return json.dumps({"cloud": cloud}, indent=2) + "\n"

    def write(self, done: str) -> None:
        """Create the file, readable only by its owner. Fail if the file already exists.

        `done` is a text about the completed steps, for errors. Raise CommandError.
        """
        if self.path is None:
            return
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
                opened.write(self.text)
        except OSError as error:
            # Print the file, because its secret would be lost otherwise.
            sys.stdout.write(self.text)
            raise CommandError(
                f"cannot write {self.path}: {write_reason(error)}; {done}, so save the file that "
                "is printed above"
            ) from None

    def as_json(self) -> dict[str, str]:
        return {"file": str(self.path)} if self.path is not None else {"config": self.text}

    def print(self, done: str) -> None:
        """Print the completed and the next steps. Also print the file if it was not written."""
        # Only the file goes to standard output, so that it can be redirected.
        say = print_text if self.path is not None else print_error
        say(done)
        if self.path is None:
            sys.stdout.write(self.text)
            say(f"This file has a secret. Save it as {_DEFAULT_NAME} with the mode 0600.")
        say(render_instructions(str(self.path or _DEFAULT_NAME), self.login))


def require_writable(file: Path) -> None:
    """Raise CommandError if the file cannot be written.

    Check this before a secret is created, because the secret would be lost.
    """
    if file.exists() or file.is_symlink():
        raise CommandError(f"{file} exists; choose another file, or remove it first")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise CommandError(f"cannot write into {file.parent}; choose another directory")


def render_instructions(file: str, login: FleetLogin) -> str:
    """Return instructions for the computer of the machine."""
    command = f"cogwork-server -config {shlex.quote(Path(file).name)}"
    copied = file
    if not login.is_encrypted and not is_loopback(login.host):
        command += " -allow-insecure-creds"
    if login.authority is not None:
        copied = f"{file} and {login.authority}"
        command = f"SSL_CERT_FILE={login.authority.name} {command}"
    return f"Copy {copied} to the machine, and run there:\n  {command}"
