"""What can go wrong, as a person should hear it.

CogworkError
├── InvalidName     a name, API or model that cannot be read
├── InvalidRequest  a call that asks for what cannot be
├── NotFound        a call that names what is not there
├── Unsupported     a call that this resource has no answer to
├── Interrupted     a call that was ended before its work was done
├── NotConfigured   a resource that nobody configured (robot/machine.py, with the next two)
├── NotAvailable    a resource that is not ready, and why
├── NotStopped      something that moves and could not be stopped
├── Cancelled       a call that somebody ended (robot/operations.py, with the next two)
├── TookTooLong     a call without a deadline that took longer than any may
├── Reconfigured    a call whose resource was replaced
├── NotInTheCloud   a question only a cloud's machine can answer (robot/service.py)
├── TooManyCalls    a resource whose places are taken (wire/fairness.py)
├── Unanswered      a method that forgot to reply (wire/grpc.py)
├── CannotListen    an address that cannot be listened on (wire/front.py)
├── ScriptedFault   what a fake was told to fail with (drivers/sensor/fake.py)
├── FellBehind      a stream whose reader is too slow (drivers/board/ticks.py)
├── Unreadable      a configuration file that is not there, or not text (config/file.py)
├── DamagedCopy     a last-known-good copy that is not what was written (config/last_good.py)
├── InUse           a spool that another process has (logs/spool.py)
├── UsageError      a command line of the server that makes no sense (server/options.py)
├── NothingToRun    a server without any configuration (server/serve.py)
├── Unreachable     a machine that does not answer a command (cli/reach.py, with the next)
├── Declined        a machine that answers that it cannot
└── Misused         a command that names what is not there (cli/call.py)
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
