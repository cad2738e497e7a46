/** Methods of the machine that the SDK has no client for. */

import type { MethodKind } from '@bufbuild/protobuf';
import { commonApi, gripperApi, inputControllerApi, type RobotClient } from '@viamrobotics/sdk';

const UNARY = 0 as MethodKind.Unary;

/** What a resource says about itself, by name; the fields are its model's own. */
export async function getStatus(robot: RobotClient, service: string, name: string): Promise<Record<string, unknown>> {
  // The SDK lacks the messages of GetStatus. These are the same on the wire: a name, and a struct.
  const method = { name: 'GetStatus', I: commonApi.DoCommandRequest, O: commonApi.DoCommandResponse, kind: UNARY };
  const client = robot.createServiceClient({ typeName: service, methods: { getStatus: method } });
  const answer = await client.getStatus({ name });
  return (answer.result?.toJson() ?? {}) as Record<string, unknown>;
}

const GRIPPER = {
  typeName: 'viam.component.gripper.v1.GripperService',
  methods: {
    isHoldingSomething: {
      name: 'IsHoldingSomething',
      I: gripperApi.IsHoldingSomethingRequest,
      O: gripperApi.IsHoldingSomethingResponse,
      kind: UNARY,
    },
  },
} as const;

export interface Holding {
  readonly isHolding: boolean;
  /** What the model adds, such as the width of the object. */
  readonly details: Readonly<Record<string, unknown>>;
}

export async function isHoldingSomething(robot: RobotClient, name: string): Promise<Holding> {
  const answer = await robot.createServiceClient(GRIPPER).isHoldingSomething({ name });
  return { isHolding: answer.isHoldingSomething, details: (answer.meta?.toJson() ?? {}) as Record<string, unknown> };
}

const INPUT_CONTROLLER = {
  typeName: 'viam.component.inputcontroller.v1.InputControllerService',
  methods: {
    getControls: {
      name: 'GetControls',
      I: inputControllerApi.GetControlsRequest,
      O: inputControllerApi.GetControlsResponse,
      kind: UNARY,
    },
  },
} as const;

export async function getControls(robot: RobotClient, name: string): Promise<string[]> {
  const answer = await robot.createServiceClient(INPUT_CONTROLLER).getControls({ controller: name });
  return answer.controls;
}
