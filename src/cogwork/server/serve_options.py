"""The options of a server that runs a machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServeOptions:
    config_file: Path
    port: int | None = None
    """Takes precedence over the port of the configuration."""
    untrusted: bool = False
    """People who configure the machine may not run programs of their own."""
    allow_plaintext_credentials: bool = False
    """Other computers may log in without TLS."""
    no_tls: bool = False
    """Serve plaintext even if there is a certificate."""
    webrtc: bool = True
    """Let clients connect over WebRTC."""
    mdns: bool = True
    """Let clients find the machine by name."""
    shareddir: Path | None = None
    """The files of another control page."""
