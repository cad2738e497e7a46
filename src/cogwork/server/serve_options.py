"""The options of a server that runs a machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cogwork.server.missing_config import VIAM_CONFIG


@dataclass(frozen=True, slots=True)
class ServeOptions:
    config_file: Path
    port: int | None = None
    """Port that takes precedence over the configured port."""
    untrusted: bool = False
    """Whether to refuse to run programs that the configuration names."""
    allow_plaintext_credentials: bool = False
    """Whether other computers may log in without TLS."""
    no_tls: bool = False
    """Whether to serve plaintext even if a certificate is configured."""
    webrtc: bool = True
    """Whether clients can connect over WebRTC."""
    mdns: bool = True
    """Whether clients can find the machine by name."""
    shareddir: Path | None = None
    """Directory of a custom control page; None for the built-in page."""
    viam_config: Path = VIAM_CONFIG
    """A configuration to migrate if there is none to run."""
