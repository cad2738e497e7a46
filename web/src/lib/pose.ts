/** Poses: a position in millimeters and a rotation, of one frame relative to another. */

export type Vector = readonly [number, number, number];

export interface Quaternion {
  readonly w: number;
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

export interface Pose {
  readonly point: Vector;
  readonly rotation: Quaternion;
}

export const NO_ROTATION: Quaternion = { w: 1, x: 0, y: 0, z: 0 };
export const IDENTITY: Pose = { point: [0, 0, 0], rotation: NO_ROTATION };

export function fromAxisAngle(axis: Vector, angle: number): Quaternion {
  const [x, y, z] = unitVector(axis);
  const sine = Math.sin(angle / 2);
  return { w: Math.cos(angle / 2), x: x * sine, y: y * sine, z: z * sine };
}

/** The Hamilton product: the first rotation, then the other about the rotated axes. */
export function multiply(one: Quaternion, other: Quaternion): Quaternion {
  return {
    w: one.w * other.w - one.x * other.x - one.y * other.y - one.z * other.z,
    x: one.w * other.x + one.x * other.w + one.y * other.z - one.z * other.y,
    y: one.w * other.y - one.x * other.z + one.y * other.w + one.z * other.x,
    z: one.w * other.z + one.x * other.y - one.y * other.x + one.z * other.w,
  };
}

/** Throws a RangeError if the quaternion has no direction. */
export function normalize({ w, x, y, z }: Quaternion): Quaternion {
  const length = Math.hypot(w, x, y, z);
  if (!(length > 0 && length < Infinity)) {
    throw new RangeError('w, x, y and z of a quaternion must be finite, and at least one of them not zero');
  }
  return { w: w / length, x: x / length, y: y / length, z: z / length };
}

export function rotate(rotation: Quaternion, [x, y, z]: Vector): Vector {
  // Twice the cross product of the axis and the vector.
  const ux = 2 * (rotation.y * z - rotation.z * y);
  const uy = 2 * (rotation.z * x - rotation.x * z);
  const uz = 2 * (rotation.x * y - rotation.y * x);
  return [
    x + rotation.w * ux + rotation.y * uz - rotation.z * uy,
    y + rotation.w * uy + rotation.z * ux - rotation.x * uz,
    z + rotation.w * uz + rotation.x * uy - rotation.y * ux,
  ];
}

/** Converts `inner` from the frame of `outer` to the frame around it. */
export function compose(outer: Pose, inner: Pose): Pose {
  const [x, y, z] = rotate(outer.rotation, inner.point);
  const point: Vector = [outer.point[0] + x, outer.point[1] + y, outer.point[2] + z];
  // Normalized each time, so that a long chain does not drift.
  return { point, rotation: normalize(multiply(outer.rotation, inner.rotation)) };
}

/** Throws a RangeError for a vector without a direction. */
export function unitVector([x, y, z]: Vector): Vector {
  const length = Math.hypot(x, y, z);
  if (!(length > 0 && length < Infinity)) {
    throw new RangeError('x, y and z of a direction must be finite, and at least one of them not zero');
  }
  return [x / length, y / length, z / length];
}

export function cross(one: Vector, other: Vector): Vector {
  return [one[1] * other[2] - one[2] * other[1], one[2] * other[0] - one[0] * other[2], one[0] * other[1] - one[1] * other[0]];
}
