/** Dead reckoning on a plane. */

/** Millimeters to the right and forward of the start; degrees counterclockwise from forward. */
export interface PlanarPose {
  readonly x: number;
  readonly y: number;
  readonly heading: number;
}

export interface Velocity {
  /** Millimeters per second, forward. */
  readonly linear: number;
  /** Degrees per second, counterclockwise. */
  readonly angular: number;
}

export const ORIGIN: PlanarPose = { x: 0, y: 0, heading: 0 };
export const REST: Velocity = { linear: 0, angular: 0 };

/** Where something is after it moved at a constant velocity: along a line or an arc. */
export function advance(pose: PlanarPose, velocity: Velocity, seconds: number): PlanarPose {
  const turn = velocity.angular * seconds;
  const half = ((turn / 2) * Math.PI) / 180;
  const chord = velocity.linear * seconds * (half ? Math.sin(half) / half : 1);
  const direction = (pose.heading * Math.PI) / 180 + half;
  return {
    x: pose.x - chord * Math.sin(direction),
    y: pose.y + chord * Math.cos(direction),
    heading: pose.heading + turn,
  };
}

/** The smallest of 1, 2, 5, 10, 20, 50, … that is at least the length. */
export function roundUp(length: number): number {
  const power = 10 ** Math.floor(Math.log10(length));
  return ([1, 2, 5].find((each) => each * power >= length * 0.999999) ?? 10) * power;
}
