"""What can go wrong, as a person should hear it.

CogworkError
├── InvalidName     a name, API or model that cannot be read
├── InvalidRequest  a call that asks for what cannot be
├── NotFound        a call that names what is not there
├── Unsupported     a call that this resource has no answer to
├── Interrupted     a call that was ended before its work was done
├── ScriptedFault   what a fake was told to fail with (drivers/sensor/fake.py)
├── FellBehind      a stream whose reader is too slow (drivers/board/ticks.py)
├── Unreadable      a configuration file that is not there, or not text (config/file.py)
└── DamagedCopy     a last-known-good copy that is not what was written (config/last_good.py)
"""


class CogworkError(Exception):
    """Anything Cogwork can explain to a person."""

    status = "INTERNAL"
    """The gRPC status a client gets with the words."""


class InvalidName(CogworkError, ValueError):
    """The text is not a resource name, an API or a model."""

    status = "INVALID_ARGUMENT"


class InvalidRequest(CogworkError, ValueError):
    """A client asks for something that makes no sense."""

    status = "INVALID_ARGUMENT"


class NotFound(CogworkError, LookupError):
    """The call names a part that is not there."""

    status = "NOT_FOUND"


class Unsupported(CogworkError):
    """The API has the call, and this resource has no answer to it."""

    status = "UNIMPLEMENTED"


class Interrupted(CogworkError):
    """Something else ended the call before its work was done."""

    status = "ABORTED"
