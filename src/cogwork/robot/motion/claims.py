"""Claims: records of the caller that last moved each resource."""

from __future__ import annotations

from dataclasses import dataclass

from cogwork.auth.identity import Identity
from cogwork.graph.name import ResourceName
from cogwork.robot.motion.open_sessions import LOOPBACK, Session, owner_of

_OWN_PREFIXES = ("job:", "module:")
"""Prefixes of callers that are part of the machine."""


@dataclass(frozen=True, slots=True)
class MotionPlan:
    """A motion of a motion service. It may continue after the call that started it."""

    service: ResourceName
    component: str
    """The name of the component to move, as written in the call."""


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """One call that moved a resource."""

    mover: str
    """Description of the caller, for people."""
    session: Session | None = None
    plan: MotionPlan | None = None
    """The plan that moves the resource; None if it was moved directly."""


class MotionClaims:
    """The latest claim of each resource, unless the resource was stopped since."""

    def __init__(self) -> None:
        self._by_name: dict[ResourceName, Claim] = {}

    def find(self, name: ResourceName) -> Claim | None:
        return self._by_name.get(name)

    def find_plan(self, plan: MotionPlan) -> dict[ResourceName, Claim]:
        return {name: claim for name, claim in self._by_name.items() if claim.plan == plan}

    def plans(self) -> set[MotionPlan]:
        return {claim.plan for claim in self._by_name.values() if claim.plan is not None}

    def plans_of(self, session: Session) -> set[MotionPlan]:
        claims = (self._by_name[name] for name in session.moved)
        return {claim.plan for claim in claims if claim.plan is not None}

    def take(self, name: ResourceName, claim: Claim | None) -> Claim | None:
        """Replace the claim of a resource, and return the previous one."""
        before = self._by_name.pop(name, None)
        if before is not None and before.session is not None:
            before.session.moved.discard(name)
        if claim is not None:
            self._by_name[name] = claim
            if claim.session is not None:
                claim.session.moved.add(name)
        return before

    def release(self, name: ResourceName, claim: Claim | None) -> None:
        """Remove a claim, unless another call has claimed the resource since."""
        if claim is not None and self._by_name.get(name) is claim:
            self.take(name, None)

    def release_session(self, session: Session) -> None:
        for name in tuple(session.moved):
            self.take(name, None)


def describe_mover(peer: str, identity: Identity | None) -> str:
    """Return a description of the caller, for people."""
    if peer.startswith(_OWN_PREFIXES):
        return peer.replace(":", " ", 1)
    owner = owner_of(peer)
    place = owner if owner not in (LOOPBACK, "") else "the machine's own computer"
    return f"{identity.label} at {place}" if identity is not None else place
