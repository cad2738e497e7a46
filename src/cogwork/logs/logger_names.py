"""Names of loggers, and the additional names by which a pattern may match a logger."""

from __future__ import annotations

from collections.abc import Iterator

RESOURCE_LOGGER_PREFIX = "rdk.resource_manager."
MODULE_LOGGER_PREFIX = "rdk.modmanager."
PROCESS_LOGGER_PREFIX = "rdk.process."
JOB_LOGGER_PREFIX = "rdk.job_manager."
CLIENT_LOGGER_PREFIX = "client."
"""Prefix for the loggers of clients whose name belongs to a resource, a module or the server."""

SERVER_LOGGERS = (
    "rdk",
    "rdk.activity",
    "rdk.auth",
    "rdk.config",
    "rdk.framesystem",
    "rdk.job_manager",
    "rdk.maintenance",
    "rdk.modmanager",
    "rdk.networking",
    "rdk.networking.log_upload",
    "rdk.networking.session_manager",
    "rdk.package_manager",
    "rdk.process",
    "rdk.remotes",
    "rdk.resource_manager",
    "rdk.stack_traces",
    "rdk.watchdog",
)
LIBRARY_LOGGERS = ("asyncio", "grpc", "uvicorn", "uvicorn.error", "viam")
"""Loggers of libraries in the process of the server."""
OUTPUT_LOGGERS = ("StdOut", "StdErr")
"""Loggers for the output of a module or process, below its own logger."""


def strip_prefix(prefix: str, logger: str) -> str | None:
    return logger[len(prefix) :] if logger.startswith(prefix) else None


def module_of_logger(logger: str) -> str | None:
    """Return the module of the logger `rdk.modmanager.<module>` or of a logger below it."""
    below = strip_prefix(MODULE_LOGGER_PREFIX, logger)
    return below.partition(".")[0] if below is not None else None


def matching_names(logger: str, module: str | None = None) -> Iterator[str]:
    """Yield the names by which a pattern may refer to a logger.

    These are the logger's own name and the name of its module or process. A resource can also be
    referred to by its full name, its short name, and two dotted names, such as `rdk.components.arm`
    and `rdk.components.arm.left`. `module` is the module that provides the resource.
    """
    yield logger
    if (resource := strip_prefix(RESOURCE_LOGGER_PREFIX, logger)) is not None:
        yield from _resource_names(resource)
    elif (below := strip_prefix(MODULE_LOGGER_PREFIX, logger)) is not None:
        module, _, own_name = below.partition(".")
        if own_name:
            yield own_name
    elif (below := strip_prefix(PROCESS_LOGGER_PREFIX, logger)) is not None:
        yield below.partition(".")[0]
    if module is not None:
        yield module


def _resource_names(resource: str) -> Iterator[str]:
    """Yield the names of a resource. In `resource`, the name of a child logger may follow."""
    api, _, name = resource.partition("/")
    short = name.partition(".")[0]
    namespace, _, rest = api.partition(":")
    kind, _, subtype = rest.partition(":")
    dotted = f"{namespace}.{kind}s.{subtype}"
    yield from (f"{api}/{short}", short, dotted, f"{dotted}.{short}")
