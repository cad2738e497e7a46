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
├── TooMuchWork     more than a few threads get done (core/workers.py)
├── BadImage        bytes that are no image (resource/image_header.py)
├── NoSuchEncoding  an image as something it cannot be (resource/image.py)
├── BadPicture      a camera that hands over what is none (resource/frame.py)
├── TooLarge        more pixels than a message carries (resource/camera_service.py)
├── InvalidLabels   labels that cannot be read (resource/labels.py)
├── NoCamera        a call that needs a camera, and names none (resource/vision_service.py)
├── MissingExtra    a model whose libraries are not installed (resource/model.py)
├── ScriptedFault   what a fake was told to fail with (drivers/sensor/fake.py)
├── FellBehind      a stream whose reader is too slow (drivers/board/ticks.py)
├── BadFile         a file that is not the picture it should be (drivers/camera/image_file.py)
├── SourceFault     a device or stream without pictures (drivers/camera/capture.py)
├── DeviceFault     a device that does not tell its formats (drivers/camera/v4l2.py)
├── NoSuchFormat    a format that a device does not have (drivers/camera/negotiate.py)
├── BadModel        a file that an engine cannot run (drivers/mlmodel/engine.py, with the next)
├── RunFailed       tensors that an engine can make nothing of
├── BadMetadata     a model whose description makes no sense (drivers/vision/model_view.py)
├── BadOutput       tensors that are not what they were taken for (drivers/vision/reading.py)
├── NoRole          a model that is no detector and no classifier (drivers/vision/mlmodel.py)
├── TooManyPoints   objects of more points than a message carries (drivers/vision/objects.py)
├── Unsuitable      a camera that cannot be looked through (drivers/vision/frame_vision.py)
├── Unreadable      a configuration file that is not there, or not text (config/file.py)
├── DamagedCopy     a last-known-good copy that is not what was written (config/last_good.py)
├── InUse           a spool that another process has (logs/spool.py)
├── UsageError      a command line of the server that makes no sense (server/options.py)
├── NothingToRun    a server without any configuration (server/serve.py)
├── Unreachable     a machine that does not answer a command (cli/reach.py, with the next)
├── Declined        a machine that answers that it cannot
├── NoPicture       a camera that has none for a browser (control/pictures.py)
├── NoDemo          something that the demo needs (cli/demo.py)
├── Failed          a machine of a demo that does not do its part (cli/demo_calls.py)
└── Misused         a command that names what is not there (cli/dial.py)
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
