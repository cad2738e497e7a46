"""A Python program that connects to a machine through its cloud."""

from __future__ import annotations

from cogwork.cli.client.sdk_program import render_program
from cogwork.cli.fleet.stored_login import KEY_ID_VARIABLE, KEY_VARIABLE, FleetLogin

_HTTPS_PORT = 443
LOCAL_NAME_REASON = (
    "the SDK does not use WebRTC for names that end with localhost; give the cloud another domain "
    "with: cogwork-cloud init --domain DOMAIN"
)


def make_dial_address(fqdn: str, login: FleetLogin) -> str:
    """Return the address that the SDK connects to. The name of a machine resolves to its cloud."""
    is_default = login.is_encrypted and login.port == _HTTPS_PORT
    return fqdn if is_default else f"{fqdn}:{login.port}"


def is_local_name(fqdn: str) -> bool:
    """Return whether the SDK takes a name for this computer, and so does not ask the cloud."""
    return fqdn.endswith("localhost")


def render_snippet(fqdn: str, login: FleetLogin) -> str:
    """Return a program that lists the resources of the machine."""
    settings = [] if login.is_encrypted else ["insecure = True"]
    address = make_dial_address(fqdn, login)
    return render_program(address, KEY_ID_VARIABLE, KEY_VARIABLE, settings)


def render_requirements(fqdn: str, login: FleetLogin) -> str:
    """Return the requirements of the program."""
    needs = [f"Set {KEY_ID_VARIABLE} and {KEY_VARIABLE} to a key with a role on the machine."]
    if login.authority is not None:
        needs.append(f"Set SSL_CERT_FILE to {login.authority}.")
    if is_local_name(fqdn):
        needs.append(f"It cannot connect yet: {LOCAL_NAME_REASON}.")
    return "\n".join(needs)
