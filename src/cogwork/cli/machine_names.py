"""The names of a running machine, for completion: resources, methods and modules.

Completion waits only briefly, and is silent if no machine answers. Nothing is stored.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from cogwork.cli.parsers.options import parse_machine_address
from cogwork.graph.name import Api
from cogwork.graph.public_apis import SERVICE_BY_API

DEADLINE = 1.0
"""Seconds to wait for the machine. A person waits for the completion."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:/.-]*")
"""A name that a shell reads as one word. Others are left out: a machine on the network may choose
its names so that they run a command in the shell."""
T = TypeVar("T")

_USUAL_FIELDS = ("name", "extra")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class NamedItem(NamedTuple):
    name: str
    about: str


def list_resources(address: str | None, subtype: str | None = None) -> list[NamedItem]:
    """Return the resources, or only the resources of one API.

    `address` is the value of --address; None if it is not given.
    """
    resources = _fetch_resources(address)
    counts = Counter(map(_shorten, resources))
    return _keep_safe(
        NamedItem(
            _shorten(name) if counts[_shorten(name)] == 1 else name,
            _describe(name, each),
        )
        for name, each in resources.items()
        if subtype in (None, _find_subtype(name))
    )


def list_modules(address: str | None) -> list[NamedItem]:
    return _keep_safe(
        NamedItem(each["name"], f"module, {each['state']}")
        for each in _fetch_view(address).get("modules", ())
    )


def list_methods(address: str | None, resource: str, current: str) -> list[NamedItem]:
    """Return the methods of a resource, spelled like the beginning of `current`."""
    found = [each for each in _fetch_resources(address) if resource in (each, _shorten(each))]
    service = _find_service(address, found[0]) if len(found) == 1 else None
    if service is None:
        return []
    methods = _keep_safe(
        NamedItem(each.name, _list_fields(each.input_type))
        for each in service.methods
        if not each.client_streaming
    )
    if not current[:1].islower():
        return methods
    return [NamedItem(_WORD_START.sub("_", each.name).lower(), each.about) for each in methods]


def _fetch_resources(address: str | None) -> dict[str, Any]:
    """Return the resources by full name, without the remotes, which have no API."""
    resources = _fetch_view(address).get("resources", ())
    return {each["name"]: each for each in resources if _find_subtype(each["name"])}


def _fetch_view(address: str | None) -> dict[str, Any]:
    """Return the status of the machine; empty if no machine answers in time."""
    # Import outside the deadline, which is for the machine.
    from cogwork.cli.client.another_make import fetch_view

    return _within_deadline(lambda: fetch_view(parse_machine_address(address))) or {}


def _find_service(address: str | None, resource: str) -> Any:
    """Return the descriptor of the service: the SDK's, which is fast, or else the machine's."""
    from cogwork.cli.client.sdk_descriptors import find_sdk_service

    name = SERVICE_BY_API.get(Api.parse(resource.partition("/")[0]))
    found = find_sdk_service(name) if name is not None else None
    if found is not None:
        return found
    from cogwork.cli.client.grpc_client import ask_machine
    from cogwork.cli.machine.resource_service import fetch_descriptor, find_resource

    return _within_deadline(
        lambda: ask_machine(
            parse_machine_address(address),
            lambda channel: fetch_descriptor(channel, find_resource(channel, resource)),
        )
    )


def _within_deadline(fetch: Callable[[], T]) -> T | None:
    """Return what is fetched; None if it fails or takes too long.

    The thread is a daemon, so that it does not keep the process from exiting.
    """
    found: list[T] = []

    def run() -> None:
        # A message would appear in the line that is being completed.
        with contextlib.suppress(Exception):
            found.append(fetch())

    thread = threading.Thread(target=run, name="completion", daemon=True)
    thread.start()
    thread.join(DEADLINE)
    return found[0] if found else None


def _shorten(name: str) -> str:
    return name.partition("/")[2] or name


def _find_subtype(name: str) -> str:
    """Return the last word of the API; empty for a remote, which has none."""
    return name.partition("/")[0].rpartition(":")[2]


def _describe(name: str, resource: Mapping[str, Any]) -> str:
    words = " ".join(filter(None, (_find_subtype(name), resource.get("model"))))
    return words if resource["state"] == "ready" else f"{words}, {resource['state']}"


def _list_fields(request: Any) -> str:
    names = (each.name for each in request.fields)
    return ", ".join(each for each in names if each not in _USUAL_FIELDS)


def _keep_safe(items: Iterable[NamedItem]) -> list[NamedItem]:
    return [
        NamedItem(each.name, "".join(filter(str.isprintable, each.about)))
        for each in items
        if _SAFE.fullmatch(each.name)
    ]
