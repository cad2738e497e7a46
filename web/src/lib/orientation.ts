/** Representations of a rotation: orientation vector, Euler angles, axis-angle, quaternion. */

import {
  cross,
  fromAxisAngle,
  multiply,
  normalize,
  NO_ROTATION,
  rotate,
  unitVector,
  type Pose,
  type Quaternion,
  type Vector,
} from './pose';

/** A pose as messages have it: millimeters, and an orientation vector with theta in degrees. */
export interface PoseMessage {
  readonly x: number;
  readonly y: number;
  readonly z: number;
  readonly oX: number;
  readonly oY: number;
  readonly oZ: number;
  readonly theta: number;
}

const NEAR_POLE = 1e-4;
const DEGREE = Math.PI / 180;
const [X, Y, Z]: readonly Vector[] = [
  [1, 0, 0],
  [0, 1, 0],
  [0, 0, 1],
];

/** Throws a RangeError if a number is not finite. */
export function fromPoseMessage(pose: PoseMessage | undefined): Pose {
  if (pose === undefined) return { point: [0, 0, 0], rotation: NO_ROTATION };
  const { x, y, z, oX, oY, oZ, theta } = pose;
  if (![x, y, z, oX, oY, oZ, theta].every(Number.isFinite)) throw new RangeError('a pose has a number that is not finite');
  return { point: [x, y, z], rotation: fromOvDegrees(oX, oY, oZ, theta) };
}

export function toPoseMessage({ point: [x, y, z], rotation }: Pose): PoseMessage {
  const [oX, oY, oZ, theta] = toOvDegrees(rotation);
  return { x, y, z, oX, oY, oZ, theta };
}

/**
 * Converts an orientation vector: the direction of the z axis, and a rotation about it.
 *
 * The rotation is by theta about z, then down from z by the latitude, then about z by the longitude.
 * Close to the poles the longitude is undefined: there theta defines the direction of the x axis, as if
 * the longitude were zero. A zero vector points straight up.
 */
export function fromOvDegrees(x: number, y: number, z: number, degrees: number): Quaternion {
  const direction = x || y || z ? unitVector([x, y, z]) : Z!;
  const theta = degrees * DEGREE;
  if (isNearPole(direction)) return fromOvAtPole(direction, theta);
  const latitude = Math.atan2(Math.hypot(direction[0], direction[1]), direction[2]);
  const longitude = Math.atan2(direction[1], direction[0]);
  return normalize(multiply(multiply(fromAxisAngle(Z!, longitude), fromAxisAngle(Y!, latitude)), fromAxisAngle(Z!, theta)));
}

/** Returns the direction of the z axis as a unit vector, and theta from -180 to 180. */
export function toOvDegrees(quaternion: Quaternion): [number, number, number, number] {
  const rotation = normalize(quaternion);
  const direction = unitVector(rotate(rotation, Z!));
  if (isNearPole(direction)) {
    const [x, y] = rotate(rotation, X!);
    return [...direction, Math.atan2(y, Math.sign(direction[2]) * x) / DEGREE];
  }
  // The two angles are the half sum and the half difference of longitude and theta.
  const theta = Math.atan2(rotation.z, rotation.w) - Math.atan2(-rotation.x, rotation.y);
  return [...direction, (theta - 2 * Math.PI * Math.round(theta / (2 * Math.PI))) / DEGREE];
}

/** Intrinsic z-y'-x'' angles in radians: yaw, then pitch, then roll. */
export function fromEuler(roll: number, pitch: number, yaw: number): Quaternion {
  return normalize(multiply(multiply(fromAxisAngle(Z!, yaw), fromAxisAngle(Y!, pitch)), fromAxisAngle(X!, roll)));
}

/** Reads `{"type": …, "value": {…}}` as in configurations and kinematics. Throws a RangeError if it is invalid. */
export function parseOrientation(kind: string, value: Readonly<Record<string, unknown>>): Quaternion {
  if (Object.keys(value).length === 0) return NO_ROTATION;
  const fields = new Map(Object.entries(value).map(([key, given]) => [key.toLowerCase(), given]));
  const number = (key: string) => requireNumber(fields.get(key) ?? 0, `"${key}" of ${kind}`);
  const vector = (): [number, number, number] => [number('x'), number('y'), number('z')];
  switch (kind) {
    case 'ov_degrees':
      return fromOvDegrees(...vector(), number('th'));
    case 'ov_radians':
      return fromOvDegrees(...vector(), number('th') / DEGREE);
    case 'euler_angles':
      return fromEuler(number('roll'), number('pitch'), number('yaw'));
    case 'axis_angles':
      return fromAxisAngle(vector(), number('th'));
    case 'quaternion':
      return normalize({ w: number('w'), x: number('x'), y: number('y'), z: number('z') });
    default:
      throw new RangeError(`"${kind}" is not a type of orientation`);
  }
}

/** Throws a RangeError if the value is not a finite number. */
export function requireNumber(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new RangeError(`${what} is not a finite number`);
  return value;
}

function isNearPole(direction: Vector): boolean {
  return 1 - Math.abs(direction[2]) <= NEAR_POLE;
}

/**
 * The x axis is perpendicular to the z axis, and its horizontal direction is theta. At the lower pole the
 * frame is upside down, so theta is measured from below.
 */
function fromOvAtPole(zAxis: Vector, theta: number): Quaternion {
  const [x, y] = [Math.sign(zAxis[2]) * Math.cos(theta), Math.sin(theta)];
  const xAxis = unitVector([x, y, -(zAxis[0] * x + zAxis[1] * y) / zAxis[2]]);
  return fromAxes(xAxis, cross(zAxis, xAxis), zAxis);
}

/** Of four equivalent formulas, the most accurate one. */
function fromAxes([xx, yx, zx]: Vector, [xy, yy, zy]: Vector, [xz, yz, zz]: Vector): Quaternion {
  if (xx + yy + zz > 0) return normalize({ w: 1 + xx + yy + zz, x: zy - yz, y: xz - zx, z: yx - xy });
  if (xx >= yy && xx >= zz) return normalize({ w: zy - yz, x: 1 + xx - yy - zz, y: xy + yx, z: xz + zx });
  if (yy >= zz) return normalize({ w: xz - zx, x: xy + yx, y: 1 + yy - xx - zz, z: yz + zy });
  return normalize({ w: yx - xy, x: xz + zx, y: yz + zy, z: 1 + zz - xx - yy });
}
