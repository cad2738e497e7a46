"""The rows of the tables after all migrations. Times are microseconds since 1970."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OrganizationRow:
    id: str
    name: str
    namespace: str | None
    created_at: int
    is_hosting: bool


@dataclass(frozen=True, slots=True)
class LocationRow:
    id: str
    organization_id: str
    parent_id: str | None
    name: str
    created_at: int


@dataclass(frozen=True, slots=True)
class MachineRow:
    id: str
    organization_id: str
    location_id: str
    name: str
    created_at: int
    deleted_at: int | None
    last_access_at: int | None


@dataclass(frozen=True, slots=True)
class PartRow:
    id: str
    organization_id: str
    machine_id: str
    name: str
    is_main: bool
    config: str
    revision: int
    created_at: int
    updated_at: int
    deleted_at: int | None
    restart_requested_at: int | None
    last_access_at: int | None


@dataclass(frozen=True, slots=True)
class PartHistoryRow:
    part_id: str
    revision: int
    edited_at: int
    editor_type: str
    editor_id: str
    name: str
    config: str


@dataclass(frozen=True, slots=True)
class SecretRow:
    id: str
    owner_type: str
    owner_id: str
    digest: str
    sealed: str
    created_at: int


@dataclass(frozen=True, slots=True)
class ApiKeyRow:
    id: str
    organization_id: str
    name: str
    digest: str
    sealed: str
    created_at: int
    epoch: int


@dataclass(frozen=True, slots=True)
class RoleGrantRow:
    key_id: str
    organization_id: str
    resource_type: str
    resource_id: str
    role: str


@dataclass(frozen=True, slots=True)
class RegistryItemRow:
    id: str
    organization_id: str
    name: str
    type: str
    visibility: int
    url: str
    description: str
    details: str
    created_at: int
    updated_at: int
    deprecated_at: int | None
    deprecation: str
    deleted_at: int | None


@dataclass(frozen=True, slots=True)
class PackageRow:
    id: str
    item_id: str
    version: str
    platform: str
    platform_tags: str
    label: str
    digest: str
    crc32c: int
    size: int
    files: str
    metadata: str
    details: str
    created_at: int
    deleted_at: int | None


@dataclass(frozen=True, slots=True)
class DeprecatedVersionRow:
    item_id: str
    version: str
    deprecated_at: int
    deprecation: str


@dataclass(frozen=True, slots=True)
class FragmentRow:
    id: str
    organization_id: str
    revision: int
    created_at: int
    deleted_at: int | None


@dataclass(frozen=True, slots=True)
class FragmentRevisionRow:
    fragment_id: str
    revision: int
    edited_at: int
    editor_type: str
    editor_id: str
    name: str
    visibility: int
    config: str


@dataclass(frozen=True, slots=True)
class FragmentTagRow:
    fragment_id: str
    tag: str
    revision: int


@dataclass(frozen=True, slots=True)
class PartPlatformRow:
    part_id: str
    platform: str
    platform_tags: str


@dataclass(frozen=True, slots=True)
class ConfigReferenceRow:
    owner_type: str
    owner_id: str
    target_type: str
    target_id: str
    version: str


@dataclass(frozen=True, slots=True)
class RolloutRow:
    id: str
    channel: str
    product: str
    number: int
    version: str
    stages: str
    stage_time: int
    max_failures: int
    stage: int
    stage_began: int
    reach: int
    widened_at: int
    paused_at: int | None
    pause_reason: str
    counted_from: int
    is_superseded: bool
    created_at: int
    is_rollback: bool


@dataclass(frozen=True, slots=True)
class TrialRow:
    rollout_id: str
    part_id: str
    version_before: str
    offered_at: int
    outcome: str
    reason: str
    since: int | None
    reported_at: int


@dataclass(frozen=True, slots=True)
class PartSoftwareRow:
    part_id: str
    product: str
    running: str
    installed: str
    started_at: int | None
    platform: str
    distribution: str
    hindrance: str
    changed_at: int


@dataclass(frozen=True, slots=True)
class UpdateReportRow:
    part_id: str
    product: str
    version: str
    outcome: str
    reason: str
    since: int | None
    reported_at: int


@dataclass(frozen=True, slots=True)
class PartAgentRow:
    part_id: str
    info: str


@dataclass(frozen=True, slots=True)
class ClaimCodeRow:
    digest: str
    part_id: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class HostLabelRow:
    location_id: str
    label: str
    part_id: str
    until: int | None


@dataclass(frozen=True, slots=True)
class CloudRow:
    id: str
    generation: int
    checkpoint: int
    created_at: int
    restored_at: int | None


@dataclass(frozen=True, slots=True)
class FormerFingerprintRow:
    digest: str
    fingerprint: str
