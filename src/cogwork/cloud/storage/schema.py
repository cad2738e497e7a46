"""The tables of the cloud's records, in SQL that SQLite and PostgreSQL share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogwork.cloud.storage.part_labels import label_parts
from cogwork.cloud.storage.records import Transaction

_FIRST: Final = """
CREATE TABLE organization (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    namespace TEXT UNIQUE,
    created_at BIGINT NOT NULL
);
CREATE TABLE location (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    parent_id TEXT REFERENCES location (id),
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX location_by_organization ON location (organization_id);
CREATE INDEX location_by_parent ON location (parent_id);
CREATE TABLE machine (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    location_id TEXT NOT NULL REFERENCES location (id),
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT,
    last_access_at BIGINT
);
CREATE INDEX machine_by_location ON machine (location_id);
CREATE INDEX machine_by_organization ON machine (organization_id);
CREATE TABLE part (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    machine_id TEXT NOT NULL REFERENCES machine (id),
    name TEXT NOT NULL,
    is_main INTEGER NOT NULL,
    config TEXT NOT NULL,
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    restart_requested_at BIGINT,
    last_access_at BIGINT
);
CREATE INDEX part_by_machine ON part (machine_id);
CREATE TABLE part_history (
    part_id TEXT NOT NULL REFERENCES part (id),
    revision BIGINT NOT NULL,
    edited_at BIGINT NOT NULL,
    editor_type TEXT NOT NULL,
    editor_id TEXT NOT NULL,
    name TEXT NOT NULL,
    config TEXT NOT NULL,
    PRIMARY KEY (part_id, revision)
);
CREATE TABLE secret (
    id TEXT PRIMARY KEY,
    owner_type TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX secret_by_owner ON secret (owner_type, owner_id);
CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX api_key_by_organization ON api_key (organization_id);
CREATE TABLE role_grant (
    key_id TEXT NOT NULL REFERENCES api_key (id),
    organization_id TEXT NOT NULL REFERENCES organization (id),
    resource_type TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    role TEXT NOT NULL,
    PRIMARY KEY (key_id, resource_type, resource_id)
);
CREATE INDEX role_grant_by_organization ON role_grant (organization_id);
"""

_REGISTRY_AND_FRAGMENTS: Final = """
CREATE TABLE registry_item (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    visibility INTEGER NOT NULL,
    url TEXT NOT NULL,
    description TEXT NOT NULL,
    details TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deprecated_at BIGINT,
    deprecation TEXT NOT NULL,
    deleted_at BIGINT,
    UNIQUE (organization_id, name)
);
CREATE TABLE package (
    id TEXT PRIMARY KEY,
    item_id TEXT NOT NULL REFERENCES registry_item (id),
    version TEXT NOT NULL,
    platform TEXT NOT NULL,
    platform_tags TEXT NOT NULL,
    label TEXT NOT NULL,
    digest TEXT NOT NULL,
    crc32c BIGINT NOT NULL,
    size BIGINT NOT NULL,
    files TEXT NOT NULL,
    metadata TEXT NOT NULL,
    details TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT,
    UNIQUE (item_id, label)
);
CREATE INDEX package_by_digest ON package (digest);
CREATE TABLE deprecated_version (
    item_id TEXT NOT NULL REFERENCES registry_item (id),
    version TEXT NOT NULL,
    deprecated_at BIGINT NOT NULL,
    deprecation TEXT NOT NULL,
    PRIMARY KEY (item_id, version)
);
CREATE TABLE fragment (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE INDEX fragment_by_organization ON fragment (organization_id);
CREATE TABLE fragment_revision (
    fragment_id TEXT NOT NULL REFERENCES fragment (id),
    revision BIGINT NOT NULL,
    edited_at BIGINT NOT NULL,
    editor_type TEXT NOT NULL,
    editor_id TEXT NOT NULL,
    name TEXT NOT NULL,
    visibility INTEGER NOT NULL,
    config TEXT NOT NULL,
    PRIMARY KEY (fragment_id, revision)
);
CREATE TABLE fragment_tag (
    fragment_id TEXT NOT NULL REFERENCES fragment (id),
    tag TEXT NOT NULL,
    revision BIGINT NOT NULL,
    PRIMARY KEY (fragment_id, tag)
);
CREATE TABLE part_platform (
    part_id TEXT PRIMARY KEY REFERENCES part (id),
    platform TEXT NOT NULL,
    platform_tags TEXT NOT NULL
);
CREATE TABLE config_reference (
    owner_type TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (owner_type, owner_id, target_type, target_id, version)
);
CREATE INDEX config_reference_by_target ON config_reference (target_type, target_id);
"""

_UPDATES: Final = """
CREATE TABLE release (
    product TEXT NOT NULL,
    version TEXT NOT NULL,
    platform TEXT NOT NULL,
    digest TEXT NOT NULL,
    size BIGINT NOT NULL,
    filename TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (product, version, platform)
);
CREATE INDEX release_by_digest ON release (digest);
CREATE TABLE rollout (
    id TEXT PRIMARY KEY,
    channel TEXT NOT NULL,
    product TEXT NOT NULL,
    number BIGINT NOT NULL,
    version TEXT NOT NULL,
    stages TEXT NOT NULL,
    stage_time BIGINT NOT NULL,
    max_failures BIGINT NOT NULL,
    stage BIGINT NOT NULL,
    stage_began BIGINT NOT NULL,
    reach BIGINT NOT NULL,
    widened_at BIGINT NOT NULL,
    paused_at BIGINT,
    pause_reason TEXT NOT NULL,
    counted_from BIGINT NOT NULL,
    is_superseded INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (channel, product, number)
);
CREATE TABLE trial (
    rollout_id TEXT NOT NULL REFERENCES rollout (id),
    part_id TEXT NOT NULL REFERENCES part (id),
    version_before TEXT NOT NULL,
    offered_at BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    since BIGINT,
    reported_at BIGINT NOT NULL,
    PRIMARY KEY (rollout_id, part_id)
);
CREATE INDEX trial_by_outcome ON trial (rollout_id, outcome, reported_at);
CREATE TABLE part_software (
    part_id TEXT NOT NULL REFERENCES part (id),
    product TEXT NOT NULL,
    running TEXT NOT NULL,
    installed TEXT NOT NULL,
    started_at BIGINT,
    platform TEXT NOT NULL,
    distribution TEXT NOT NULL,
    hindrance TEXT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (part_id, product)
);
CREATE TABLE update_report (
    part_id TEXT NOT NULL REFERENCES part (id),
    product TEXT NOT NULL,
    version TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    since BIGINT,
    reported_at BIGINT NOT NULL,
    PRIMARY KEY (part_id, product)
);
"""

_AGENT_INFO: Final = """
CREATE TABLE part_agent (
    part_id TEXT PRIMARY KEY REFERENCES part (id),
    info TEXT NOT NULL
);
"""

_CLAIM_CODES: Final = """
CREATE TABLE claim_code (
    digest TEXT PRIMARY KEY,
    part_id TEXT NOT NULL REFERENCES part (id),
    expires_at BIGINT NOT NULL
);
"""

_EPOCHS: Final = """
ALTER TABLE api_key ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
"""

_HOST_LABELS: Final = """
CREATE TABLE host_label (
    location_id TEXT NOT NULL,
    label TEXT NOT NULL,
    part_id TEXT NOT NULL REFERENCES part (id),
    until BIGINT,
    PRIMARY KEY (location_id, label)
);
CREATE INDEX host_label_by_part ON host_label (part_id);
CREATE UNIQUE INDEX host_label_in_use ON host_label (part_id) WHERE until IS NULL;
"""

_ROLLBACKS_AND_HOSTING: Final = """
ALTER TABLE release ADD COLUMN minimum_version TEXT NOT NULL DEFAULT '';
ALTER TABLE rollout ADD COLUMN is_rollback INTEGER NOT NULL DEFAULT 0;
ALTER TABLE organization ADD COLUMN is_hosting INTEGER NOT NULL DEFAULT 0;
UPDATE organization SET is_hosting = 1
    WHERE id = (SELECT id FROM organization ORDER BY created_at, id LIMIT 1);
"""

_CLOUD_KEYS: Final = """
CREATE TABLE cloud (
    id TEXT PRIMARY KEY,
    generation BIGINT NOT NULL,
    checkpoint BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    restored_at BIGINT
);
CREATE TABLE cloud_key (
    id TEXT PRIMARY KEY,
    purpose TEXT NOT NULL,
    public TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    active_from BIGINT NOT NULL,
    ends_at BIGINT
);
CREATE TABLE former_fingerprint (
    digest TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL
);
"""

_LOG_LOSSES: Final = """
CREATE TABLE log_loss (
    part_id TEXT NOT NULL REFERENCES part (id),
    day TEXT NOT NULL,
    refused BIGINT NOT NULL,
    dropped BIGINT NOT NULL,
    PRIMARY KEY (part_id, day)
);
"""

_ROLES_BY_RESOURCE: Final = """
CREATE INDEX role_grant_by_resource ON role_grant (resource_type, resource_id);
"""

Migration = str | Callable[[Transaction], None]

MIGRATIONS: Final[tuple[Migration, ...]] = (
    _FIRST,
    _REGISTRY_AND_FRAGMENTS,
    _UPDATES,
    _AGENT_INFO,
    _CLAIM_CODES,
    _EPOCHS,
    _HOST_LABELS,
    label_parts,
    _ROLLBACKS_AND_HOSTING,
    _CLOUD_KEYS,
    _LOG_LOSSES,
    _ROLES_BY_RESOURCE,
)
"""The steps from each schema version to the next: SQL scripts, or functions for changes that SQL
cannot compute. Released steps never change."""
