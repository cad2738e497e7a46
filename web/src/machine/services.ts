/** The services of each API, as the SDK and the machine itself describe them. */

import {
  ArmClient,
  AudioInClient,
  AudioOutClient,
  BaseClient,
  BoardClient,
  ButtonClient,
  CameraClient,
  DataManagerClient,
  DiscoveryClient,
  EncoderClient,
  GantryClient,
  GenericComponentClient,
  GenericServiceClient,
  GripperClient,
  InputControllerClient,
  MLModelClient,
  MotionClient,
  MotorClient,
  MovementSensorClient,
  PoseTrackerClient,
  PowerSensorClient,
  SensorClient,
  ServoClient,
  SlamClient,
  SwitchClient,
  VisionClient,
  WorldStateStoreClient,
  type RobotClient,
} from '@viamrobotics/sdk';
import { reflectService } from './reflection';
import type { Service } from './service_type';

type ClientClass = new (robot: RobotClient, name: string) => unknown;

/**
 * The SDK's client of each API. Navigation is missing because the SDK's client is for an older
 * API than the machine's.
 */
const CLIENTS: Readonly<Record<string, ClientClass>> = {
  'rdk:component:arm': ArmClient,
  'rdk:component:audio_in': AudioInClient,
  'rdk:component:audio_out': AudioOutClient,
  'rdk:component:base': BaseClient,
  'rdk:component:board': BoardClient,
  'rdk:component:button': ButtonClient,
  'rdk:component:camera': CameraClient,
  'rdk:component:encoder': EncoderClient,
  'rdk:component:gantry': GantryClient,
  'rdk:component:generic': GenericComponentClient,
  'rdk:component:gripper': GripperClient,
  'rdk:component:input_controller': InputControllerClient,
  'rdk:component:motor': MotorClient,
  'rdk:component:movement_sensor': MovementSensorClient,
  'rdk:component:pose_tracker': PoseTrackerClient,
  'rdk:component:power_sensor': PowerSensorClient,
  'rdk:component:sensor': SensorClient,
  'rdk:component:servo': ServoClient,
  'rdk:component:switch': SwitchClient,
  'rdk:service:data_manager': DataManagerClient,
  'rdk:service:discovery': DiscoveryClient,
  'rdk:service:generic': GenericServiceClient,
  'rdk:service:mlmodel': MLModelClient,
  'rdk:service:motion': MotionClient,
  'rdk:service:slam': SlamClient,
  'rdk:service:vision': VisionClient,
  'rdk:service:world_state_store': WorldStateStoreClient,
};

/**
 * The SDK's description of an API's service. The SDK does not export it, but each of its clients
 * passes it to the robot that it is made for.
 */
export function sdkService(api: string): Service | undefined {
  const kind = CLIENTS[api];
  if (kind === undefined) return undefined;
  let found: Service | undefined;
  const recorder = {
    createServiceClient: (service: Service) => {
      found = service;
      return {};
    },
  };
  new kind(recorder as unknown as RobotClient, '');
  return found;
}

/** The service of an API: as the SDK knows it, else as the machine describes it. */
export async function findService(robot: RobotClient, api: string): Promise<Service> {
  return sdkService(api) ?? (await reflectService(robot, await findServiceName(robot, api)));
}

async function findServiceName(robot: RobotClient, api: string): Promise<string> {
  const subtypes = await robot.resourceRPCSubtypes();
  const found = subtypes.find(({ subtype }) => subtype && `${subtype.namespace}:${subtype.type}:${subtype.subtype}` === api);
  if (found === undefined) throw new Error(`the machine does not describe the methods of ${api}`);
  return found.protoService;
}
