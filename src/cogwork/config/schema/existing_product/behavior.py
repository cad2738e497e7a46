"""What the machine does differently with the same configuration."""

from __future__ import annotations

from typing import NamedTuple


class BehaviorDifference(NamedTuple):
    subject: str
    before: str
    """What viam-server does."""
    here: str


BEHAVIOR: tuple[BehaviorDifference, ...] = (
    BehaviorDifference(
        "An invalid attribute",
        "the server does not start",
        "that resource is unhealthy and says why; all others run",
    ),
    BehaviorDifference(
        "An unknown key",
        "ignored silently",
        "ignored, and reported with its line and the key that was probably meant",
    ),
    BehaviorDifference(
        "A key in other letter case",
        "matched",
        "matched, and reported with the key to write; in the attributes of modules, keys are "
        "passed on as they are",
    ),
    BehaviorDifference(
        "Two resources with the same name and API",
        "neither runs",
        "the first one runs, and the second one is reported",
    ),
    BehaviorDifference(
        "A changed file",
        "variables of the environment are only replaced when the server starts",
        "they are replaced every time; `${packages.…}` and `${environment.…}` work in files, too",
    ),
    BehaviorDifference(
        "Changed attributes of a running resource",
        "it is closed and built again",
        "models that can apply them in place do so",
    ),
    BehaviorDifference(
        "A resource that depends on a removed one",
        "it is removed from the machine",
        "it stays, unhealthy, and returns with what it depends on",
    ),
    BehaviorDifference(
        "A resource or a module that fails",
        "retried every 5 seconds",
        "retried after 0.5 to 30 seconds, with growing pauses; at once when what it needs returns",
    ),
    BehaviorDifference(
        "`bind_address` on the network without a login",
        "the machine is open to everyone who reaches it",
        "the machine listens on localhost, unless `insecure_without_auth` is set",
    ),
    BehaviorDifference("`processes`", "ignored since version 0.74", "run and supervised"),
    BehaviorDifference(
        "Sockets of modules",
        "in a shared folder, and on a TCP port without a login",
        "in a private folder; on a TCP port only with `tcp_mode`",
    ),
    BehaviorDifference(
        "`maintenance`",
        "also holds back changed configurations",
        "holds back updates of the server and the agent only; anything but a fresh `true` of the "
        "sensor means no",
    ),
    BehaviorDifference(
        "`n` of classifications that is not above 0",
        "all, in the order of the classes",
        "all, highest confidence first",
    ),
    BehaviorDifference(
        "Labels of `label_confidences` that the model does not have",
        "ignored silently",
        "ignored, and shown in the log and in the status of the service",
    ),
    BehaviorDifference(
        "Codes of gRPC errors",
        "UNKNOWN for most",
        "NOT_FOUND, UNAVAILABLE with the reason, INVALID_ARGUMENT, FAILED_PRECONDITION; the texts "
        "that clients match on are the same",
    ),
)
