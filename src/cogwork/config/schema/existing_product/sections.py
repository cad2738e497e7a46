"""The settings of each section that viam-server and its cloud know, and that are different here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cogwork.config.schema.existing_product.difference import Difference, Treatment

_FOR_EDITOR = (
    Difference(
        "notes",
        Treatment.NO_EFFECT,
        "it is a comment for people who edit the configuration in the cloud",
        "write comments with // in this file",
    ),
    Difference(
        "ui_folder",
        Treatment.NO_EFFECT,
        "it only groups entries in the editor of the cloud",
    ),
)
"""Settings of every entry that only the editor of the cloud reads."""

SECTION_KEYS: Mapping[str, tuple[Difference, ...]] = MappingProxyType(
    {
        "": (
            *_FOR_EDITOR,
            Difference(
                "triggers",
                Treatment.NOT_TAKEN_OVER,
                "nothing watches for events, so no notification is sent",
                "let a program call the machine and send the notification, such as an entry of "
                '"processes"',
            ),
            Difference(
                "fragments",
                Treatment.NOT_TAKEN_OVER,
                "only a cloud resolves fragments, so the entries of the fragments are missing",
                "copy the entries of the fragments into this file, or join a cloud that has them",
            ),
            Difference(
                "fragment_mods",
                Treatment.NOT_TAKEN_OVER,
                "only a cloud resolves fragments and their changes",
                "copy the changed entries into this file, or join a cloud that has the fragments",
            ),
            Difference(
                "overwrite_fragment_status",
                Treatment.NO_EFFECT,
                "it is a report of the cloud about its fragments",
            ),
            Difference(
                "data_retention_policy",
                Treatment.NOT_TAKEN_OVER,
                "this release does not store captured data, so there is nothing to delete",
            ),
            Difference(
                "disable_partial_start",
                Treatment.NO_EFFECT,
                "a fault in one resource never prevents the others from starting",
            ),
            Difference(
                "reload_path",
                Treatment.NO_EFFECT,
                "it is a setting of a module",
                'set it in the entry of the module, under "modules"',
            ),
            Difference(
                "reload_enabled",
                Treatment.NO_EFFECT,
                "it is a setting of a module",
                'set it in the entry of the module, under "modules"',
            ),
        ),
        "components": _FOR_EDITOR,
        "services": _FOR_EDITOR,
        "modules": _FOR_EDITOR,
        "remotes": _FOR_EDITOR,
        "packages": _FOR_EDITOR,
        "processes": _FOR_EDITOR,
        "jobs": _FOR_EDITOR,
        "maintenance": _FOR_EDITOR,
        "cloud": (
            Difference(
                "path",
                Treatment.NO_EFFECT,
                'the machine derives the address of its configuration from "app_address"',
            ),
            Difference(
                "log_path",
                Treatment.NO_EFFECT,
                'the machine derives the address of its logs from "app_address"',
            ),
        ),
    }
)
"""The settings by section. The section "" is the top level. A list has the settings of its
entries."""
