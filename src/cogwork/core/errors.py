"""What can go wrong, as a person should hear it.

CogworkError
├── InvalidName     a name, API or model that cannot be read
├── InvalidRequest  a call that asks for what cannot be
├── NotFound        a call that names what is not there
├── Unsupported     a call that this resource has no answer to
├── Interrupted     a call that was ended before its work was done
├── FellBehind      a stream whose reader is too slow
├── NotConfigured   a resource that nobody configured (robot/machine.py, with the next two)
├── NotAvailable    a resource that is not ready, and why
├── NotStopped      something that moves and could not be stopped
├── Cancelled       a call that somebody ended (robot/operations.py, with the next two)
├── TookTooLong     a call without a deadline that took longer than any may
├── Reconfigured    a call whose resource was replaced
├── Expired         a session that is over (robot/sessions.py, with the next)
├── TooManySessions more sessions than are kept
├── NoFrame         a frame that nobody has (robot/frames.py, with the next)
├── NoKinematics    an arm that does not say how it is built, or where its joints are
├── BrokenTunnel    a port that ends a connection carried to it (robot/tunnel.py)
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
├── Alone           a resource that belongs to no machine (resource/neighbours.py)
├── ScriptedFault   what a fake was told to fail with (drivers/sensor/fake.py)
├── BadDescription  a file that describes no arm (drivers/arm/described.py)
├── InManualMode    an arm that is moved by hand (drivers/arm/fake.py)
├── Stuck           a motor that does not get where it goes (drivers/motor/gpio.py)
├── Astray          a base that does not get where it is sent (drivers/motion/drive.py)
├── LostTrack       motors of an odometer that say nothing (movement_sensor/wheeled_odometry.py)
├── NoPins          a computer whose pins cannot be had (drivers/gpio/factory.py)
├── PinFault        a pin that does not do as it is told (drivers/gpio/pin.py)
├── NoAnswer        a pin or an encoder that says nothing (drivers/gpio/wire.py)
├── TicksLost       an encoder that missed some (drivers/gpio/tick_reader.py)
├── PortFault       a serial port that cannot be had (drivers/sensor/serial_port.py)
├── NoReadings      a serial port that says nothing (drivers/sensor/serial.py)
├── GamepadFault    a gamepad that is not there (drivers/input_controller/gamepad_device.py)
├── NoGoal          nothing to suspend or resume (drivers/navigation/pilot.py, with the next)
├── NotLocalized    a machine that does not know where it is
├── NoWay           a destination that no way leads to (drivers/navigation/effort.py)
├── Taken           a name that something else has (drivers/navigation/shelf.py, with the next)
├── Full            no room for another one
├── NoShell         a shell that cannot be had (drivers/shell/builtin.py)
├── CopyFailed      files that could not be copied (drivers/shell/files.py)
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
├── Refused         a module that says no (modules/calls.py)
├── NotRunning      a module that does not run (modules/greeting.py)
├── Gone            a life of a module that is over (modules/incarnation.py)
├── NotDescribed    a service that its module does not describe (modules/reflected.py)
├── CannotStart     a program that does not even begin to run (modules/program.py)
├── CannotStop      a process that outlives SIGKILL (modules/process.py)
├── CannotLimit     a limit that this computer cannot hold a process to (modules/limits.py)
├── AddressTooLong  a directory in which no socket can be (modules/address.py)
├── BadMeta         a meta.json that says nothing of use (modules/meta.py)
├── BadBundle       an archive that no module can be started from (modules/bundle.py)
├── FirstRunFailed  a module that could not set itself up (modules/first_run.py)
├── Unreadable      a configuration file that is not there, or not text (config/file.py)
├── DamagedCopy     a last-known-good copy that is not what was written (config/last_good.py)
├── InUse           a spool that another process has (logs/spool.py)
├── UsageError      a command line of the server that makes no sense (server/options.py)
├── NothingToRun    a server without any configuration (server/serve.py)
├── Unreachable     a machine that does not answer a command (cli/reach.py, with the next)
├── Declined        a machine that answers that it cannot
├── NoPicture       a camera that has none for a browser (control/pictures.py)
├── NoModule        a module that cannot be written (cli/module_new.py)
├── NotAModule      a path that leads to no module (cli/authored.py)
├── ServerEnded     a server that ended by itself (cli/module_run.py)
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


class FellBehind(CogworkError):
    """More waits for the reader of a stream than is kept."""

    status = "RESOURCE_EXHAUSTED"
