"""What is known about the runs of a job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobFailure:
    time: float
    reason: str


@dataclass(frozen=True, slots=True)
class JobRecord:
    """Recent runs of a job, oldest first. For each run, the time of its end is recorded, in seconds
    since 1970."""

    name: str
    configured: bool
    """Whether the job is in the configuration. Records of removed jobs are kept too."""
    successes: tuple[float, ...]
    failures: tuple[JobFailure, ...]
    skipped: int
    """Runs that were skipped because the previous one had not finished."""
    schedule: str | None
    """The schedule as configured; None if the job is not configured."""
    running_since: float | None
    """Start time of the current run; None if the job is not running."""
    next_run: float | None
    """Time of the next run; None if the job is running, continuous or not configured."""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How one run ended."""

    reason: str | None
    """Why it failed; None if it succeeded."""
    seconds: float
