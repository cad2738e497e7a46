"""Renders web/src/machine/method_roles.ts: the role that each method requires."""

from __future__ import annotations

from collections.abc import Mapping

from cogwork.auth.roles import ROLE_BY_METHOD, ROLE_BY_OTHER_METHOD, ROLE_BY_PATH, Role

_HEAD = """\
import type { Role } from './status';

/**
 * The roles that methods of the public API require, as the machine has them: by name, and by path
 * where a method needs another role than others of its name. Other methods require an owner.
 *
 * This file is generated from the code: run `make docs`.
 */
"""


def render_method_roles() -> str:
    by_name = {**ROLE_BY_METHOD, **ROLE_BY_OTHER_METHOD}
    return f"{_HEAD}{_render('ROLE_BY_METHOD', by_name)}\n{_render('ROLE_BY_PATH', ROLE_BY_PATH)}"


def _render(name: str, roles: Mapping[str, Role]) -> str:
    lines = [f"  ['{each}', '{role.name.lower()}'],\n" for each, role in sorted(roles.items())]
    return f"export const {name}: ReadonlyMap<string, Role> = new Map([\n{''.join(lines)}]);\n"
