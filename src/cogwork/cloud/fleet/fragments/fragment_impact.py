"""The impact of a fragment's change on the machines that use it.

Machines of other organizations are counted, but not checked and not named. Their configurations are
private, and must not prevent the owner from changing the fragment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from cogwork.cloud.configuration.config_checker import ConfigChecker, EditRefused
from cogwork.cloud.configuration.config_references import PartUser, TargetType, list_users
from cogwork.cloud.configuration.config_text import parse_config
from cogwork.cloud.configuration.fragment_change import FragmentChange
from cogwork.cloud.configuration.fragment_lookup import fragments_for
from cogwork.cloud.configuration.fragment_merge import merge_fragments
from cogwork.cloud.fleet.agent_info import runs_another_make
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query_values
from cogwork.core.errors import InvalidRequest

MAX_PARTS: Final = 1000
"""Maximum number of parts whose configurations are read for one change."""
MAX_CONFIGS: Final = 30
"""Maximum number of different configurations that are merged and checked for one change."""
MAX_BYTES: Final = 8 << 20
"""Maximum total size in bytes of the stored configurations, and of the merged ones."""
_MAX_SHOWN: Final = 3
"""Maximum number of mistakes to list in one error."""


class PartName(NamedTuple):
    id: str
    name: str
    machine_id: str
    machine: str
    is_main: bool

    @property
    def label(self) -> str:
        """The name of the machine, followed by the name of the part unless it is the main part."""
        return self.machine if self.is_main else f"{self.machine}/{self.name}"


@dataclass(frozen=True, slots=True)
class ConfigImpact:
    """The impact on parts that have the same configuration."""

    parts: Sequence[PartName]
    before: str
    after: str
    """The merged configurations: `before` without the change, `after` with the change."""
    mistakes: Sequence[str]
    """The mistakes that the change causes."""
    is_another_make: bool = False
    """Whether all parts run servers of another vendor."""


@dataclass(slots=True)
class Impact:
    organization: str
    """The organization of the fragment."""
    machines: int
    """Number of the organization's machines that use any version of the fragment."""
    other_machines: int
    """Number of machines of other organizations that use any version of the fragment."""
    changes: list[ConfigImpact] = field(default_factory=list)
    unchanged_parts: int = 0
    """Number of parts for which the change makes no difference."""
    unchecked_parts: int = 0

    def refuse_mistakes(self) -> None:
        """Raise InvalidRequest if the change causes mistakes."""
        wrong = [each for each in self.changes if each.mistakes]
        if wrong:
            raise InvalidRequest("".join(self._explain(wrong)))

    def _explain(self, wrong: Sequence[ConfigImpact]) -> Iterator[str]:
        first = wrong[0]
        machine = first.parts[0].machine
        count = len({part.machine_id for each in wrong for part in each.parts})
        where = f"{count} machines, such as {machine}," if count > 1 else f"the machine {machine},"
        yield (
            f"the change would be a mistake on {where} because of this fragment: "
            f"{'; '.join(first.mistakes[:_MAX_SHOWN])}"
        )
        if len(first.mistakes) > _MAX_SHOWN:
            yield f"; and {len(first.mistakes) - _MAX_SHOWN} more"
        if self.unchecked_parts:
            yield f" ({self.unchecked_parts} parts were not checked, because there are too many)"


async def measure_impact(
    context: CloudContext, checker: ConfigChecker, change: FragmentChange, organization: str
) -> Impact:
    """Merge and check each different configuration of the machines once.

    The work is limited. Parts beyond the limits are counted, but not checked.
    """
    users = await context.records.read(
        lambda tx: list_users(tx, TargetType.FRAGMENT, change.fragment)
    )
    own = [each for each in users if each.organization_id == organization]
    others = [each for each in users if each.organization_id != organization]
    impact = Impact(organization, _count_machines(own), _count_machines(others))
    if not change.texts:
        impact.unchanged_parts = len(own)
        return impact
    configs = await context.records.read(lambda tx: _group_by_config(tx, own))
    impact.unchecked_parts = len(own) - sum(map(len, configs.values()))
    size = 0
    # Check the most common configurations first, because the work may reach the limit.
    for text, parts in sorted(configs.items(), key=lambda each: -len(each[1])):
        if size > MAX_BYTES:
            impact.unchecked_parts += len(parts)
            continue
        found = await context.records.read(
            lambda tx, text=text, parts=parts: _merge(tx, change, organization, text, parts)  # type: ignore[misc]
        )
        size += len(found.before) + len(found.after)
        if found.before == found.after and not found.mistakes:
            impact.unchanged_parts += len(parts)
            continue
        impact.changes.append(await _check(checker, organization, found))
    return impact


def _count_machines(users: Sequence[PartUser]) -> int:
    return len({each.machine_id for each in users})


def _group_by_config(tx: Transaction, users: Sequence[PartUser]) -> dict[str, list[PartName]]:
    """Return the parts by the text of their configuration, up to the limits."""
    found: dict[str, list[PartName]] = {}
    size = 0
    for user in users[:MAX_PARTS]:
        (text,) = query_values(tx, str, "SELECT config FROM part WHERE id = ?", user.id)
        if text not in found:
            if len(found) == MAX_CONFIGS or size + len(text) > MAX_BYTES:
                continue
            size += len(text)
        part = PartName(user.id, user.name, user.machine_id, user.machine, user.is_main)
        found.setdefault(text, []).append(part)
    return found


def _merge(
    tx: Transaction,
    change: FragmentChange,
    organization: str,
    text: str,
    parts: Sequence[PartName],
) -> ConfigImpact:
    config: dict[str, Any] = parse_config(text)
    find = fragments_for(tx, (organization,))
    before = merge_fragments(config, find)
    after = merge_fragments(config, change.apply(find))
    known = {*before.mistakes}
    mistakes = [str(each) for each in after.mistakes if each not in known]
    is_other = all(runs_another_make(tx, each.id) for each in parts)
    return ConfigImpact(parts, _format(before.config), _format(after.config), mistakes, is_other)


def _format(config: dict[str, Any]) -> str:
    return json.dumps(config, indent=2, ensure_ascii=False)


async def _check(checker: ConfigChecker, organization: str, found: ConfigImpact) -> ConfigImpact:
    """Add the error if machines would refuse the configuration because of the change."""
    try:
        await checker.check(
            organization, lambda: found.after, is_another_make=found.is_another_make
        )
    except EditRefused as error:
        try:
            await checker.check(organization, lambda: found.before)
        except EditRefused:
            return found
        return replace(found, mistakes=[*found.mistakes, str(error)])
    return found
