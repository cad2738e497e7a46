"""Names of APIs, models and resources, as the public machine API writes them."""

from __future__ import annotations

import re
from typing import NamedTuple

from cogwork.core.errors import InvalidName

BUILTIN_NAMESPACE = "rdk"
BUILTIN_FAMILY = "builtin"
REMOTE_SEPARATOR = ":"

_WORD = re.compile(r"[\w-]+\Z", re.ASCII)
_RESOURCE_NAME = re.compile(r"[a-zA-Z0-9][-\w]*\Z", re.ASCII)
_MAX_RESOURCE_NAME = 60


class Api(NamedTuple):
    """The interface of a resource: `rdk:component:camera`."""

    namespace: str
    kind: str
    subtype: str

    @classmethod
    def parse(cls, text: str) -> Api:
        return cls(*_split_triplet(text, "an API", "rdk:component:camera"))

    def __str__(self) -> str:
        return f"{self.namespace}:{self.kind}:{self.subtype}"


class ModelName(NamedTuple):
    """An implementation of an API: `rdk:builtin:fake`."""

    namespace: str
    family: str
    name: str

    @classmethod
    def parse(cls, text: str) -> ModelName:
        """Parse a model. A single word is the name of a built-in model."""
        if _WORD.match(text):
            return cls(BUILTIN_NAMESPACE, BUILTIN_FAMILY, text)
        return cls(*_split_triplet(text, "a model", "fake or acme:arms:gripper"))

    @property
    def is_builtin(self) -> bool:
        return (self.namespace, self.family) == (BUILTIN_NAMESPACE, BUILTIN_FAMILY)

    @property
    def short(self) -> str:
        return self.name if self.is_builtin else str(self)

    def __str__(self) -> str:
        return f"{self.namespace}:{self.family}:{self.name}"


class ResourceName(NamedTuple):
    """One resource of a machine: `rdk:component:camera/belt`, or `…/line2:belt` on a remote."""

    api: Api
    name: str
    remote: str = ""

    @classmethod
    def parse(cls, text: str) -> ResourceName:
        api, _, short = text.partition("/")
        try:
            full = cls.from_short(Api.parse(api), short)
            if full.name:
                return full
        except InvalidName:
            pass
        raise InvalidName(
            f'"{text}" is not a full resource name; write it like "rdk:component:camera/belt"'
        )

    @classmethod
    def from_short(cls, api: Api, short: str) -> ResourceName:
        """Return the name for a short name in a request. The service of the request determines the
        API."""
        remote, _, name = short.rpartition(REMOTE_SEPARATOR)
        return cls(api, name, remote)

    @property
    def short(self) -> str:
        """The name that requests and people use."""
        return f"{self.remote}{REMOTE_SEPARATOR}{self.name}" if self.remote else self.name

    def __str__(self) -> str:
        return f"{self.api}/{self.short}"


class Reference(NamedTuple):
    """A dependency as written in the configuration: a short name, or a full name with the API."""

    short: str
    api: Api | None = None

    @classmethod
    def parse(cls, text: str) -> Reference:
        if "/" in text:
            full = ResourceName.parse(text)
            return cls(full.short, full.api)
        return cls(text)

    def __str__(self) -> str:
        return f"{self.api}/{self.short}" if self.api else self.short


def check_name(name: str, max_length: int = _MAX_RESOURCE_NAME) -> str:
    """Return the name if it is valid. Raise InvalidName."""
    if not name:
        raise InvalidName("the name is empty")
    if len(name) > max_length:
        raise InvalidName(f"the name has {len(name)} characters; the limit is {max_length}")
    if not _RESOURCE_NAME.match(name):
        raise InvalidName(
            "a name starts with a letter (a to z) or a digit, and contains only letters, digits, - "
            "and _"
        )
    return name


def _split_triplet(text: str, what: str, example: str) -> tuple[str, str, str]:
    words = text.split(":")
    if len(words) != 3 or not all(_WORD.match(word) for word in words):
        raise InvalidName(f'"{text}" is not {what}; write it like {example}')
    return words[0], words[1], words[2]
