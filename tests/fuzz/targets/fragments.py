"""Fragments: their texts, merging them into configurations, and masking the result.

For merging, the input is a program that builds JSON from the words of fragments, because nearly
every mutation of a text is only invalid JSON.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from tests.fuzz.target import ContractViolation, Target, allow_errors, decode_lossy

from cogwork.cloud.configuration.config_mask import mask_config, require_unmasked
from cogwork.cloud.configuration.config_references import list_references, require_few_references
from cogwork.cloud.configuration.config_text import require_config
from cogwork.cloud.configuration.fragment_merge import merge_fragments
from cogwork.cloud.configuration.fragment_use import FragmentUnavailable, FragmentUse
from cogwork.cloud.configuration.merge_budget import MAX_NESTING, MAX_SIZE
from cogwork.core.errors import InvalidRequest

Json = dict[str, Any]

SECRET = "PLANTED-SECRET"
WORDS = (
    *("", "a", "b", "f", "g", "h", "0", "1", "name", "id", "version", "prefix", "variables"),
    *("components", "services", "remotes", "modules", "fragments", "fragment_mods", "debug"),
    *("fragment_id", "mods", "$variable", "default_value", "attributes", "depends_on", "tags"),
    *("$set", "$unset", "$rename", "$inc", "$mul", "$min", "$max", "$push", "$addToSet", "$pull"),
    *("components.a", "components.a.attributes", "components.a.name", "components.0", "a.b.c"),
    *("tags", "components", "services.b.attributes.x", "x..y", ".".join("ab" * 31), "x" * 99),
    *("auth", "handlers", "config", "keys", "roles", "password", "secret", "env", "cloud", SECRET),
    *("rtsp://u:p@h/", "auth.handlers.0.config.a", "components.a.attributes.password", "***"),
)
_MAX_ITEMS = 8
_MAX_INSIDE = 120
"""Lists around a value."""


class JsonProgram:
    """Builds values from bytes: a kind, and what that kind needs."""

    def __init__(self, data: bytes) -> None:
        self._bytes = iter(data)

    def build(self, level: int = 0) -> Any:
        kind, argument = self._next() % 8, self._next()
        if kind == 0:
            return (None, True, False, 1e300, -5)[argument % 5]
        if kind == 1:
            return argument - 128
        if kind == 2 or level > MAX_NESTING:
            return "x" * argument
        if kind == 3:
            return WORDS[argument % len(WORDS)]
        if kind in (4, 5):
            return self.build_object(argument % _MAX_ITEMS, level + 1)
        if kind == 6:
            return [self.build(level + 1) for _ in range(argument % _MAX_ITEMS)]
        value = self.build(level + argument % _MAX_INSIDE)
        for _ in range(argument % _MAX_INSIDE):
            value = [value]
        return value

    def build_object(self, count: int, level: int = 0) -> Json:
        return {WORDS[self._next() % len(WORDS)]: self.build(level) for _ in range(count)}

    def _next(self) -> int:
        return next(self._bytes, 0)


def encode(value: Any) -> bytes:
    """Return the program of a value."""
    if isinstance(value, dict):
        return bytes((4, len(value))) + encode_members(value)
    if isinstance(value, list):
        return bytes((6, len(value))) + b"".join(map(encode, value))
    if isinstance(value, str):
        return bytes((3, WORDS.index(value)))
    return bytes((1, value + 128))


def encode_members(value: Json) -> bytes:
    return b"".join(bytes((WORDS.index(key),)) + encode(each) for key, each in value.items())


def target_merge(data: bytes) -> None:
    program = JsonProgram(data)
    config, f, g = program.build_object(6), program.build_object(4), program.build_object(4)
    texts = {"f": json.dumps(f), "g": json.dumps(g), "h": json.dumps({"fragments": ["f"]})}

    def find(use: FragmentUse) -> str:
        if use.id in texts:
            return texts[use.id]
        raise FragmentUnavailable("there is no such fragment")

    config = {"fragments": ["f", {"id": "g", "prefix": "p"}], **config}
    before = copy.deepcopy(config)
    merged = merge_fragments(config, find)
    if config != before:
        raise ContractViolation("the configuration was modified")
    if {"fragments", "fragment_mods"} & merged.config.keys():
        raise ContractViolation("the result refers to fragments")
    if len(json.dumps(merged.config)) > 2 * MAX_SIZE + len(json.dumps(config)):
        raise ContractViolation("the result is larger than the budget")
    if len(merged.mistakes) > 1000 or any(len(str(each)) > 1000 for each in merged.mistakes):
        raise ContractViolation("the mistakes are not bounded")
    if merge_fragments(merged.config, find) != (merged.config, []):
        raise ContractViolation("merging again changes something")


def target_mask(data: bytes) -> None:
    config = JsonProgram(data).build_object(8)
    planted = {**config, "remotes": [{"name": "r", "secret": SECRET}]}
    masked = mask_config(planted)
    if SECRET in json.dumps(masked):
        raise ContractViolation("a secret is shown")
    if mask_config(masked) != masked:
        raise ContractViolation("masking again changes something")
    require_unmasked(planted, planted)
    try:
        require_unmasked(masked, {})
    except InvalidRequest:
        return
    raise ContractViolation("a masked configuration can be saved")


def target_text(data: bytes) -> None:
    with allow_errors(data, InvalidRequest):
        config = require_config(decode_lossy(data))
        require_few_references(config)
        list_references(config)
        mask_config(config)
        text = json.dumps(config)
        merge_fragments({"fragments": ["f"]}, lambda _: text)


def _seeds() -> Sequence[bytes]:
    path = {"$variable": {"name": "a", "default_value": 1}}
    camera = {"name": "a", "attributes": {"tags": ["b"], "b": path}, "depends_on": ["b"]}
    f = {"components": [camera, {"name": "b"}], "tags": [1, 2]}
    mods = [
        {"$set": {"components.a.attributes": {"password": SECRET}}, "$push": {"tags": 3}},
        {"$rename": {"tags": "a.b.c"}, "$unset": {"components.0": 0}},
    ]
    use = {"id": "f", "prefix": "b", "variables": {"a": {"name": "b"}}}
    configs: list[Json] = [
        {"fragments": ["f"], "components": [{"name": "a"}]},
        {"fragments": [use, "g"], "fragment_mods": [{"fragment_id": "f", "mods": mods}]},
        {"auth": {"handlers": [{"config": {"keys": ["a"], "a": SECRET}}]}, "env": {"b": "f"}},
    ]
    found = []
    for config in configs:
        members = [*config.items(), *(("debug", number) for number in range(6 - len(config)))]
        own = b"".join(bytes((WORDS.index(key),)) + encode(each) for key, each in members)
        of_f = encode_members({**f, "debug": 1, "remotes": []})
        of_g = encode_members({"fragments": ["h"], "debug": 1, "tags": [2], "services": []})
        found.append(own + of_f + of_g)
    return found


def _text_seeds() -> Sequence[bytes]:
    return [
        b'{"fragments": ["f", {"id": "g", "prefix": "p", "variables": {"x": 1}}], "debug": true}',
        b'{"modules": [{"name": "m", "module_id": "acme:m", "version": "1"}], "auth": {}}',
        b'{"components": [{"name": "c", "attributes": {"$variable": {"name": "x"}}}]}',
    ]


_PACKAGE = "cogwork.cloud.configuration"
TARGETS = (
    Target(
        "fragments.merge",
        target_merge,
        _seeds,
        (
            f"{_PACKAGE}.fragment_merge",
            f"{_PACKAGE}.fragment_overrides",
            f"{_PACKAGE}.fragment_use",
            f"{_PACKAGE}.merged_config",
            f"{_PACKAGE}.merge_budget",
        ),
        tokens=tuple(bytes((kind, 2)) for kind in range(8)),
    ),
    Target(
        "fragments.mask",
        target_mask,
        _seeds,
        (f"{_PACKAGE}.config_mask",),
        tokens=tuple(bytes((kind, 2)) for kind in range(8)),
    ),
    Target(
        "fragments.text",
        target_text,
        _text_seeds,
        (f"{_PACKAGE}.config_text:require_config", f"{_PACKAGE}.config_references"),
        tokens=tuple(
            json.dumps(each).encode() for each in ("fragments", "id", "name", "$variable", "mods")
        ),
    ),
)
