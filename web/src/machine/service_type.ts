/** The SDK's types of a service: its methods, and their messages. */

import type { RobotClient } from '@viamrobotics/sdk';

export type Service = Parameters<RobotClient['createServiceClient']>[0];
export type Method = Service['methods'][string];
export type MessageType = Method['I'];
