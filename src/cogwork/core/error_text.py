"""The text of an exception, for users."""

from __future__ import annotations

import enum

from cogwork.core.errors import CogworkError

_CODE_ERRORS = (LookupError, TypeError, AttributeError, NameError, ImportError, AssertionError)


def error_text(error: BaseException) -> str:
    """Return the message of an exception, or the name of its type if it has none.

    The message of a programming error, such as "'fps'", is meaningless alone, so add the type.
    """
    return typed_error_text(error) if is_code_error(error) else _render(error, "")


def typed_error_text(error: BaseException) -> str:
    """Return the type and the message of an unexpected exception."""
    return _render(error, f"{type(error).__name__}: ")


def is_code_error(error: BaseException | None) -> bool:
    """Return whether an exception is probably a programming error."""
    return isinstance(error, _CODE_ERRORS) and not isinstance(error, CogworkError)


def _render(error: BaseException, prefix: str) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    kind = type(error).__name__
    try:
        # The message may quote a file name that cannot be encoded.
        text = _message(error).encode(errors="backslashreplace").decode()
    except Exception:
        return f"{kind} (its message cannot be rendered)"
    return prefix + text if text else kind


def _message(error: BaseException) -> str:
    # Unwrap errors of calls, which the SDK wraps. `str` would render grpclib errors as tuples.
    cause = getattr(error, "grpc_error", error)
    status = getattr(cause, "status", None)
    if isinstance(status, enum.Enum):
        return str(getattr(cause, "message", None) or status.name)
    return str(error)
