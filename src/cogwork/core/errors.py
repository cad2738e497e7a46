"""The exceptions that Cogwork can explain to a person.

CogworkError
├── InvalidName     a name, API or model that cannot be parsed
├── InvalidRequest  a request that is invalid
│   ├── InvalidLogin    a login that is incomplete (auth/errors.py)
│   └── ClientGone      a request whose client has disconnected (wire/transports/http_body.py)
├── NotFound        a call that names something that does not exist
├── Unsupported     a call that this resource does not support
├── Interrupted     a call that was ended before it was complete
├── SlowConsumer    a stream whose reader is too slow
├── NotConfigured   a resource that is not configured (robot/unavailable.py, with the next three)
├── NotAvailable    a resource that is not ready, and why
│   ├── BeingChanged    a resource that is being built or replaced
│   └── Stopping        a machine that stops
├── NotStopped      something that could not be stopped (robot/motion/motion_stopper.py)
├── Cancelled       a call that was cancelled (robot/middleware/operations.py, with the next two)
├── TookTooLong     a call without a deadline that exceeded the maximum duration
├── Reconfigured    a call whose resource was replaced
├── SessionExpired  a session that expired (robot/motion/session_manager.py, with the next)
├── TooManySessions more sessions than the limit
├── ConfigRejected  a configuration that its provider rejects (graph/provider.py)
├── NoFrame         a frame that does not exist (robot/frame_system.py, with the next)
├── NoKinematics    an arm without a kinematic model, or without joint positions
├── InvalidReadings a maintenance sensor without readings (robot/status/maintenance.py)
├── BrokenTunnel    a tunneled connection that its port closed (robot/services/tunnel.py)
├── NoCloudMetadata a call that only works for a cloud machine (robot/services/robot.py)
├── TooManyCalls    a resource with too many concurrent calls (wire/table/concurrency_limit.py)
├── RequestTooLarge a request larger than its method accepts (wire/table/request_limits.py)
├── OverBudget      a client whose requests exceed their budget (core/limits/byte_budget.py)
├── RepliesNotRead  a client that does not read its replies (wire/transports/unread_replies.py)
├── NoReply         a method that returned without a reply (wire/transports/grpc.py)
├── Unauthenticated a caller that has not logged in (auth/errors.py, with the next two)
├── RoleTooLow      a caller whose role does not allow the call
├── TooManyAttempts logins that fail too often
├── ProtectionMissing  a configured login that is not possible (config/source/watcher.py)
├── InvalidCertificate a certificate that cannot be used (serving/certificate.py)
├── NotAnImage      camera data that is unsafe for a browser (control/camera_images.py)
├── Overloaded      more HTTP requests than the limits allow (control/quota.py)
├── CannotListen    an address that cannot be bound (net/listen_sockets.py)
├── TooMuchWork     more work than the threads can queue (core/workers.py)
├── BadImage        data that is not an image (media/image_header.py)
├── NoSuchEncoding  an image type that is not supported (media/image.py)
├── BadCameraImage  a camera that returned an invalid image (resource/frame.py)
├── CameraDataTooLarge camera data that exceeds the message size (resource/services/camera.py)
├── InvalidLabels   labels that cannot be parsed (resource/labels.py)
├── NoCamera        a call that must name a camera (resource/services/vision.py)
├── MissingExtra    a model whose libraries are not installed (resource/model.py)
├── NoMachine       a resource that is not part of a machine (resource/machine_access.py)
├── ScriptedFault   the failure that a fake is configured to raise (drivers/sensor/fake.py)
├── BadArmModel     a file that does not describe an arm (drivers/arm/arm_model.py)
├── InManualMode    an arm that is in manual mode (drivers/arm/fake.py)
├── MotorStalled    a motor that does not reach its target (drivers/motor/gpio.py)
├── OffCourse       a base that left its course (drivers/motion/base_drive.py)
├── LostTrack       an odometer without readings (drivers/movement_sensor/wheeled_odometry.py)
├── NoPins          GPIO pins that are not available (drivers/gpio/factory.py)
├── PinFault        a pin operation that failed (drivers/gpio/pin.py)
├── NoAnswer        a pin or an encoder that does not respond (drivers/gpio/pin_link.py)
├── TicksLost       an encoder that missed ticks (drivers/gpio/tick_reader.py)
├── PortFault       a serial port that cannot be opened (drivers/sensor/serial_port.py)
├── NoReadings      a serial port without data (drivers/sensor/serial.py)
├── GamepadFault    a gamepad that is not connected (drivers/input_controller/gamepad_device.py)
├── NoGoal          no goal to suspend or resume (drivers/navigation/goal_executor.py)
├── NotLocalized    a machine whose position is unknown (drivers/navigation/vehicle.py)
├── LeftPath        a vehicle that left its path (drivers/navigation/vehicle.py)
├── NoPath          a destination that cannot be reached (drivers/navigation/search_budget.py)
├── AlreadyExists   a name that is in use (drivers/navigation/named_store.py)
├── StoreFull       a store that has reached its limit
├── NoShell         a shell that is not available (drivers/shell/builtin.py)
├── CopyFailed      files that could not be copied (drivers/shell/file_copy.py)
├── BadFile         a file that is not a valid image (drivers/camera/image_file.py)
├── SourceFault     a device or stream that delivers no images (drivers/camera/capture.py)
├── DeviceFault     a device whose formats cannot be queried (drivers/camera/v4l2.py)
├── NoSuchFormat    a format that the device does not support (drivers/camera/format_selection.py)
├── BadModel        a file that an engine cannot run (drivers/mlmodel/engine.py, with the next)
├── RunFailed       an inference that failed
├── BadMetadata     a model with invalid metadata (drivers/vision/decoding/model_view.py)
├── BadOutput       output tensors that cannot be decoded (drivers/vision/decoding/decoder.py)
├── NoCapability    a model that is neither detector nor classifier (drivers/vision/mlmodel.py)
├── TooManyPoints   point clouds that exceed the message size (drivers/vision/objects_3d.py)
├── UnsuitableCamera a camera that this vision service cannot use (drivers/vision/frame_vision.py)
├── ModuleCallError a call that a module rejected (modules/client.py)
├── NotRunning      a module that is not running (modules/handshake.py)
├── ModuleEnded     a module session that has ended (modules/session.py)
├── NotDescribed    a service without descriptors (wire/clients/fetched_descriptors.py)
├── CannotStart     a program that cannot start (subprocesses/executable_check.py, with the next)
├── Misconfigured   a program that requires a changed configuration first
├── CannotStop      a process that survives SIGKILL (subprocesses/process.py)
├── CannotLimit     a process limit that cannot be enforced here (subprocesses/limits.py)
├── AddressTooLong  a directory path too long for a Unix socket (net/local_address.py)
├── PackageUnavailable a package that is not available now (packages/errors.py, with the next)
├── BadPackage      an archive that is not the package
├── BadMeta         an invalid meta.json (modules/meta.py)
├── BadArchive      an archive that is damaged or exceeds a limit (archives/tar.py)
├── NotAllowed      a call that the module may not make (robot/middleware/access.py)
├── BadBundle       an archive that does not contain a usable module (modules/bundle.py)
├── FirstRunFailed  a module whose first-run script failed (modules/first_run.py)
├── Unreadable      a configuration file that is missing or not text (config/text/file.py)
├── DamagedCopy     a last-known-good copy that is corrupt (config/source/last_good.py)
├── SpoolInUse      a spool that another process uses (logs/spool.py)
├── BadRelease      a release that cannot be trusted (agent/errors.py, with the next ten)
├── DiskFull        not enough free space for a version
├── InstallFailed   a release that could not be installed
├── BadState        a record of the versions that cannot be read
├── ServerSilent    a server that does not answer its agent
├── SwitchFailed    a new version that failed its trial
├── SourceUnavailable  a source of updates that does not answer
├── BadSettings     settings of the agent that cannot be used
├── AgentRunning    an agent that is already running
├── CannotInstallAgent  an agent that cannot be installed or removed
├── CannotJoin      a claim code that a cloud does not accept
├── SystemctlFailed a command of systemctl that failed (systemd/systemctl.py)
├── UsageError      an invalid command line of the server (server/options.py)
├── CannotInstallService a server that cannot be installed as a service (server/install/errors.py)
├── NoConfiguration a configuration file that does not exist (server/serve.py)
├── RecordsUnavailable the cloud's records cannot be used (cloud/storage/records.py, with the next)
├── DuplicateRecord a record that already exists
├── BrokenReference a record that refers to one that does not exist (cloud/storage/records.py)
├── LogsUnavailable the cloud's logs cannot be used (cloud/storage/log_store.py, with the next)
├── SearchTooSlow   a search through a log that takes too long
├── DiskLow         a disk without space for logs and packages (cloud/storage/disk_space.py)
├── LogQuotaSpent   a machine that logs more than its quota (cloud/machine/log_intake.py)
├── BlobsUnavailable blobs that cannot be used now (cloud/storage/blobs.py, with the next two)
├── BlobTooLarge    an upload that is larger than the limit
├── UploadStalled   an upload whose sender pauses for too long
├── RegistryFull    an organization with too many packages (cloud/registry/items.py)
├── UnsatisfiableRange a range of bytes that a file does not have (cloud/registry/byte_range.py)
├── FragmentInUse   a fragment that machines use (cloud/fleet/fragments/fragments.py, with the next)
├── TooManyFragments an organization with too many fragments
├── ReleaseExists   another archive of the same release (cloud/updates/releases.py)
├── CannotReadRelease an archive that is not a release (cloud/commands/release_commands.py)
├── ItemInUse       a registry item that machines use (cloud/registry/item_operations.py)
├── CannotUnseal    a secret that was stored with another key (cloud/keys/sealer.py)
├── NoRootKey       a root key of the cloud that is missing (cloud/keys/root_key.py)
├── RotationPending a rotation while the next key already exists (cloud/keys/key_records.py)
├── UnknownPart     a part that is not in the cloud's records (cloud/identity/login.py)
├── SecretNotKept   a secret that can no longer be shown (cloud/machine/machine_http.py)
├── CannotBackUp    a copy of the cloud's records that cannot be written (cloud/commands/backup.py)
├── SecretLimit     an owner with the maximum number of secrets (cloud/fleet/secrets.py)
├── NotEmpty        a location that is still used (cloud/fleet/locations.py)
├── StaleConfig     a configuration that someone else changed (cloud/fleet/part_configs.py)
├── EditRefused     a configuration that machines refuse (cloud/configuration/config_checker.py)
├── CheckTooSlow    a check that takes too long (cloud/configuration/config_checker.py)
├── LastOwner       the last owner of an organization (cloud/fleet/keys.py, with the next)
├── KeyLimit        a resource on which too many keys have roles
├── AlreadyInitialized a cloud that already has its first owner (cloud/commands/create_cloud.py)
├── CloudUnavailable a cloud that does not answer (uplink/errors.py)
├── RemoteUnavailable another machine that cannot be used now (remotes/errors.py)
├── HostOffline     a machine that is not connected to the cloud (cloud/signaling/rendezvous.py)
├── TooManyCallers  a machine that too many clients call (cloud/signaling/rendezvous.py)
├── TooManyMessages a call whose messages are not read (cloud/signaling/rendezvous.py)
├── InvalidRelay    options for TURN servers that cannot be used (cloud/signaling/relay_servers.py)
├── NoCloud         an incomplete cloud (cloud/control_plane/cloud_directory.py, with the next)
├── CloudInUse      a directory that another process uses
├── PlaintextRefused keys that would be sent unencrypted (cloud/serve.py)
├── Unreachable     a machine that does not respond (cli/client/http_client.py, with the next)
├── Declined        a machine that rejected the request
├── NoImage         a camera without an image for a browser (control/camera_images.py)
├── CannotCreateModule a module project that cannot be created (cli/module/new.py)
├── CannotIssue     a certificate that cannot be issued (cli/config/certs.py)
├── CannotEdit      a configuration file that cannot be edited (cli/config/auth.py)
├── CannotRead      a file that a command cannot read (cli/model/inspect.py)
├── NotAModule      a path that is not a module project (cli/module/project.py)
├── ServerEnded     a server that exited unexpectedly (cli/module/run.py)
├── NoResource      a resource that the machine does not have (cli/machine/status.py)
├── DemoUnavailable a requirement of the demo that is not met (cli/demo/run.py)
├── DemoCallFailed  a demo machine that rejected a call (cli/demo/client.py)
├── CannotAsk       a question that cannot be asked without a terminal (cli/confirmation.py)
├── CloudUnreachable a cloud that does not respond (cli/fleet/fleet_client.py, with the next)
├── CloudRefused    a cloud that rejected a call
├── EditConflict    a configuration that others saved first (cli/fleet/config/config_update.py)
├── CannotConnect   no connection through a cloud (cli/fleet/connect.py)
└── CommandError    a command that names something that does not exist (cli/client/grpc_client.py)
"""


class CogworkError(Exception):
    """The base of all errors that Cogwork can explain to a person."""

    status = "INTERNAL"
    """The gRPC status that clients get with the message."""


class InvalidName(CogworkError, ValueError):
    """The text is not a resource name, an API or a model."""

    status = "INVALID_ARGUMENT"


class InvalidRequest(CogworkError, ValueError):
    """The request is invalid."""

    status = "INVALID_ARGUMENT"


class NotFound(CogworkError, LookupError):
    """The call names something that does not exist."""

    status = "NOT_FOUND"


class Unsupported(CogworkError):
    """The API has this call, but the resource does not support it."""

    status = "UNIMPLEMENTED"


class Interrupted(CogworkError):
    """The call was ended before it was complete."""

    status = "ABORTED"


class SlowConsumer(CogworkError):
    """A stream has more unread messages than the limit."""

    status = "RESOURCE_EXHAUSTED"
