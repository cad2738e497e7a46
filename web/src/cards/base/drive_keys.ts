/** The directions of a driving pad, and the keys that stand for them. */

import type { Velocity } from './odometry';

export type Direction = 'forward' | 'backward' | 'left' | 'right';

const KEYS: Readonly<Record<string, Direction>> = {
  KeyW: 'forward',
  ArrowUp: 'forward',
  KeyS: 'backward',
  ArrowDown: 'backward',
  KeyA: 'left',
  ArrowLeft: 'left',
  KeyD: 'right',
  ArrowRight: 'right',
};

/** The direction of a key by its place on the keyboard. */
export function directionOf(code: string): Direction | undefined {
  return KEYS[code];
}

/** Opposite directions cancel each other. */
export function combine(held: ReadonlySet<Direction>, limit: Velocity): Velocity {
  const sign = (plus: Direction, minus: Direction) => Number(held.has(plus)) - Number(held.has(minus));
  return { linear: sign('forward', 'backward') * limit.linear, angular: sign('left', 'right') * limit.angular };
}
