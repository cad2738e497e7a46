"""The reference page of `cogwork.driver`, generated from its docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from cogwork import driver

_INTRO = """\
# cogwork.driver

Everything that a driver or a plug-in needs of Cogwork, in one import. Import it before the SDK:

```python
from cogwork.driver import Attributes, Model, Dependency, find_dependency
from viam.components.motor import Motor
```

These names follow [semantic versioning](stability.md); anything else under `cogwork` may change in
any release. [Write a driver](../guides/write-a-driver.md) uses them step by step.

"""

SECTIONS = {
    "Models": ("Model", "model_from_sdk_class", "Api", "ModelName", "ResourceName"),
    "Attributes": ("Attributes", "Dependency", "OptionalDependency", "ExistingFile", "Duration"),
    "Dependencies": ("Dependencies", "find_dependency"),
    "Errors": ("CogworkError", "InvalidRequest", "NotFound", "Unsupported", "Interrupted"),
    "Threads, time and logs": ("Workers", "Clock", "SystemClock", "logger_of"),
    "Camera frames": ("Frame", "Image", "FrameProducer"),
    "Health and safety": ("ReportsFault", "EmergencyStop"),
    "The SDK": ("SDK_VERSION",),
}
_ALIASES = {
    "Dependencies": "A mapping of `ResourceName` to the resource: what `new` gets as its last "
    "argument.",
    "Duration": "A field with a duration: `10s`, `1m30s`, `250ms`. Its value is in seconds.",
    "SDK_VERSION": "The version of the SDK that is installed, as text.",
}
"""Names without a docstring, because they are neither classes nor functions."""
_BOUND = ("self", "cls")
_QUOTED_ANNOTATION = re.compile(r"(: |-> )'([^']*)'")
"""Matches quoted annotations. Annotations are stored as text, which a signature shows in quotes."""


def render_driver_page() -> str:
    return _INTRO + "\n".join(
        f"## {title}\n\n" + "\n".join(_render_entry(name) for name in names)
        for title, names in SECTIONS.items()
    )


def _render_entry(name: str) -> str:
    thing = getattr(driver, name)
    if name in _ALIASES:
        return f"### `{name}`\n\n{_ALIASES[name]}\n"
    text = f"### `{name}`\n\n{inspect.cleandoc(thing.__doc__ or '')}\n"
    if inspect.isfunction(thing):
        return text + f"\n```python\n{_render_signature(name, thing)}\n```\n"
    members = "".join(f"- {line}\n" for line in _render_members(thing))
    return text + (f"\n{members}" if members else "")


def _render_signature(name: str, function: Any) -> str:
    prefix = "await " if inspect.iscoroutinefunction(function) else ""
    signature = inspect.signature(function)
    parameters = [each for each in signature.parameters.values() if each.name not in _BOUND]
    text = _QUOTED_ANNOTATION.sub(r"\1\2", str(signature.replace(parameters=parameters)))
    return f"{prefix}{name}{text}"


def _render_members(kind: type) -> Iterator[str]:
    """Return the public methods and properties that the class itself documents."""
    for name, member in tuple(vars(kind).items()):
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "__func__", function)
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        label = name if isinstance(member, property) else _render_signature(name, function)
        summary = " ".join(inspect.cleandoc(function.__doc__).split("\n\n")[0].split())
        yield f"`{label}`: {summary}"
