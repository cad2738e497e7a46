"""Names of APIs, models and resources, and addresses."""

from __future__ import annotations

from tests.fuzz.target import ContractViolation, Target, allow_errors, split_texts

from cogwork.config.schema.network import NetworkConfig
from cogwork.core.errors import CogworkError, InvalidName
from cogwork.graph.name import Api, ModelName, Reference, ResourceName, check_name
from cogwork.net.address import Address
from cogwork.robot.jobs.job_call import resolve_name

_KNOWN = [
    ResourceName.parse("rdk:component:camera/belt"),
    ResourceName.parse("rdk:component:motor/belt"),
    ResourceName.parse("rdk:service:vision/line2:eyes"),
]


def target_resource(data: bytes) -> None:
    text = split_texts(data)[0]
    for kind in (Api, ModelName, ResourceName, Reference):
        with allow_errors(data, InvalidName):
            parsed = kind.parse(text)
            if kind.parse(str(parsed)) != parsed:
                raise ContractViolation(f"{parsed} does not survive being written")
    with allow_errors(data, InvalidName):
        check_name(text)
    with allow_errors(data, CogworkError):
        resolve_name(text, _KNOWN)


def target_address(data: bytes) -> None:
    """Check that an accepted address can be parsed and has a valid port."""
    text = split_texts(data)[0]
    with allow_errors(data, ValueError):
        accepted = NetworkConfig.model_validate({"bind_address": text}).bind_address
        if not accepted:
            return
        try:
            address = Address.parse(accepted)
        except ValueError as error:
            raise ContractViolation(f"{accepted!r} is accepted and cannot be parsed") from error
        if not 0 <= address.port <= 65535:
            raise ContractViolation(f"there is no port {address.port}")
        if Address.parse(str(address)) != address:
            raise ContractViolation(f"{address!r} does not survive being written")
        assert isinstance(address.is_loopback, bool)


TARGETS = (
    Target(
        "names.resource",
        target_resource,
        lambda: [
            b"rdk:component:camera/belt",
            b"rdk:component:camera/line2:belt",
            b"acme:arms:gripper",
            b"belt",
            b"eyes",
        ],
        ("cogwork.graph.name", "cogwork.robot.jobs.job_call:resolve_name"),
        (b":", b"/", b"rdk:component:", b"-", b"_"),
        largest=200,
    ),
    Target(
        "names.address",
        target_address,
        lambda: [b"localhost:8080", b"[::1]:80", b":0", b"127.0.0.1:65535", b"fe80::1%eth0:1"],
        ("cogwork.net.address:Address", "cogwork.config.schema.network:_check_host_and_port"),
        (b":", b"[", b"]", b"65535", b"65536", b"%", b"\xd9\xa1"),
        largest=200,
    ),
)
