"""Roles of clients, and the role that each method requires.

A method name requires the same role in every service. The table lists every method of the public
API, and a test fails if one is missing. Methods that are not listed require an owner.
"""

from __future__ import annotations

import enum
from typing import Final


class Role(enum.IntEnum):
    """The role of a client. Each role may also call the methods of the lower roles."""

    VIEWER = 1
    """May call methods that move nothing and change nothing."""
    OPERATOR = 2
    """May also call the operator's methods below, and all methods of APIs that modules define."""
    OWNER = 3
    """May call everything."""


ROLE_NAMES: Final = {role.name.lower(): role for role in Role}

_VIEWER_METHODS: Final = """
    BlockForOperation CaptureAllFromCamera FrameSystemConfig Get3DModels GetAccuracy
    GetAngularVelocity GetAudio GetClassifications GetClassificationsFromCamera GetCloudMetadata
    GetCompassHeading GetControls GetCostmap GetCurrent GetCurrentInputs GetDetections
    GetDetections3D GetDetectionsFromCamera GetDigitalInterruptValue GetEndPosition GetEvents
    GetGPIO GetGeometries GetImages GetInternalState GetJointPositions GetKinematics GetLengths
    GetLinearAcceleration GetLinearVelocity GetLocation GetMachineStatus GetManualMode
    GetModelsFromModules GetNavigationStatus GetNumberOfPositions GetObjectPointClouds
    GetOperations GetOrientation GetPlan GetPointCloud GetPointCloudMap GetPose GetPoses GetPosition
    GetPower GetProperties GetReadings GetRoute GetSessions GetStatus GetTransform GetVersion
    GetVoltage GetZone Infer IsHoldingSomething IsMoving IsPowered ListLocations ListPlanStatuses
    ListRoutes ListTunnels ListUUIDs ListZones Metadata PWM PWMFrequency ReadAnalogReader
    ResourceNames ResourceRPCSubtypes SendSessionHeartbeat StartSession StreamEvents StreamStatus
    StreamTicks StreamTransformChanges TransformPCD TransformPose
    Check Watch ServerReflectionInfo
    Call CallUpdate OptionalWebRTCConfig ReportConnectionMetadata
    AddStream GetStreamOptions ListStreams RemoveStream SetStreamOptions
"""
"""Methods that a viewer may call. The last lines are health, reflection, signaling and video.

StartSession is included because starting a session moves nothing. Signaling is included because
calls over WebRTC have the role of the client that opened the connection.
"""

_OPERATOR_METHODS: Final = """
    AddLocation AddRoute AddZone Cancel CancelOperation DeleteLocation DeleteRoute DeleteZone
    DiscoverResources DoCommand ExecutePlan GoFor GoTo GoToInputs GoToLocation GoToPoint Grab Home
    Log Move MoveOnGlobe MoveOnMap MoveStraight MoveThroughJointPositions
    MoveThroughJointPositionsStreamed MoveToJointPositions MoveToPosition NavigateRoute
    NavigateToLocation NavigateToPoint Open PlanToLocation PlanToPoint Play PlayStream Push
    ResetPosition ResetZeroPosition RestartModule Resume SendTraces SetGPIO SetManualMode SetPWM
    SetPWMFrequency SetPosition SetPower SetPowerMode SetRPM SetVelocity Spin Stop StopAll StopPlan
    Suspend TempStreamArmJointPositions TriggerEvent UpdateLocation UpdateRoute UpdateZone
    WriteAnalog
"""

_OWNER_METHODS: Final = (
    "Answer CopyFilesFromMachine CopyFilesToMachine Shell Shutdown Tunnel UploadDataFromPath"
)

ROLE_BY_METHOD: Final = {
    **dict.fromkeys(_VIEWER_METHODS.split(), Role.VIEWER),
    **dict.fromkeys(_OPERATOR_METHODS.split(), Role.OPERATOR),
    **dict.fromkeys(_OWNER_METHODS.split(), Role.OWNER),
}
"""The required roles by method name."""

ROLE_BY_OTHER_METHOD: Final = {
    "AddWaypoint": Role.OPERATOR,
    "Chunks": Role.VIEWER,
    "GetMode": Role.VIEWER,
    "GetObstacles": Role.VIEWER,
    "GetPaths": Role.VIEWER,
    "GetWaypoints": Role.VIEWER,
    "Properties": Role.VIEWER,
    "Record": Role.VIEWER,
    "RemoveWaypoint": Role.OPERATOR,
    "SetMode": Role.OPERATOR,
}
"""The required roles of methods that only other versions of the API have. Modules and remotes may
use those versions."""

ROLE_BY_PATH: Final = {
    # A shell service may run any command.
    "/viam.service.shell.v1.ShellService/DoCommand": Role.OWNER,
}
"""The required roles, by method path, of methods that need another role than their name
suggests."""


def granted_role(name: str | None) -> Role:
    """Return the role that an external issuer grants.

    Return owner if the issuer names no role, and viewer if this version does not know the role.
    """
    return ROLE_NAMES.get(name.lower(), Role.VIEWER) if name else Role.OWNER


def required_role(path: str, *, is_public: bool) -> Role:
    """Return the role that a method requires.

    `is_public` is True for methods of the public API, in any version. Other methods, which modules
    define, require an operator, because they may move something.
    """
    if not is_public:
        return Role.OPERATOR
    method = path.rpartition("/")[2]
    known = ROLE_BY_PATH.get(path) or ROLE_BY_METHOD.get(method)
    return known or ROLE_BY_OTHER_METHOD.get(method, Role.OWNER)
