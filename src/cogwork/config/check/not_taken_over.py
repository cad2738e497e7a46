"""Diagnostics about settings and models of viam-server that are different here."""

from __future__ import annotations

from cogwork.config.check.diagnostics import ConfigLocation, Diagnostic, Effect
from cogwork.config.check.fix import Fix, FixKind
from cogwork.config.schema import codes
from cogwork.config.schema.existing_product.difference import Difference, MissingModel, Treatment
from cogwork.config.text.positions import Json, Pointer


def not_taken_over(difference: Difference, value: Json, pointer: Pointer) -> Diagnostic:
    """Return the diagnostic about a setting. `pointer` leads to its key."""
    is_empty = value is None or value in ("", [], {})
    is_required = difference.treatment is Treatment.REQUIRED and not is_empty
    return Diagnostic(
        codes.NOT_TAKEN_OVER,
        difference.describe(str(pointer[-1]), is_empty=is_empty),
        ConfigLocation(pointer, at_key=True),
        Effect.UNHEALTHY if is_required else Effect.IGNORED,
        None if is_empty else difference.advice or None,
        fix=None if is_required else Fix(FixKind.REMOVE, pointer),
    )


def missing_model(missing: MissingModel, resource: Pointer) -> Diagnostic:
    """Return the diagnostic about the model of a resource."""
    return Diagnostic(
        codes.NOT_TAKEN_OVER,
        f'the model "{missing.model}" of the API {missing.subtype} is not taken over: '
        f"{missing.reason}",
        ConfigLocation((*resource, "model")),
        Effect.UNHEALTHY,
        missing.advice,
        fix=Fix(FixKind.REMOVE, resource) if missing.is_idle else None,
    )
