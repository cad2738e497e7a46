"""The descriptors of services that the SDK contains."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import ServiceDescriptor

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK

_PREFIX = "viam."
_GENERATED = "viam.gen."
_MESSAGES = "_pb2"


def find_sdk_service(name: str) -> ServiceDescriptor | None:
    """Return the descriptor of a service; None if the SDK does not contain it."""
    if not name.startswith(_PREFIX):
        return None
    package = _GENERATED + name.removeprefix(_PREFIX).rpartition(".")[0]
    try:
        _import_messages(package)
        pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]
        found: ServiceDescriptor = pool.FindServiceByName(name)
    except (ModuleNotFoundError, KeyError):
        return None
    return found


def _import_messages(package: str) -> None:
    """Import the messages of a package, which adds their descriptors to the default pool."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if module.name.endswith(_MESSAGES):
            importlib.import_module(f"{package}.{module.name}")
