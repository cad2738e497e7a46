import { describe, expect, it } from 'vitest';
import { advance, ORIGIN, roundUp } from './odometry';

describe('advance', () => {
  it('drives forward along y', () => {
    expect(advance(ORIGIN, { linear: 200, angular: 0 }, 2)).toEqual({ x: 0, y: 400, heading: 0 });
  });

  it('turns left for a positive angle', () => {
    const turned = advance(ORIGIN, { linear: 0, angular: 45 }, 2);
    expect(turned.heading).toBe(90);
    expect(advance(turned, { linear: 100, angular: 0 }, 1).x).toBeCloseTo(-100);
  });

  it('drives a circle back to where it began', () => {
    let pose = ORIGIN;
    for (let step = 0; step < 36; step++) pose = advance(pose, { linear: 100, angular: 10 }, 1);
    expect(pose.x).toBeCloseTo(0);
    expect(pose.y).toBeCloseTo(0);
  });
});

describe('roundUp', () => {
  it.each([
    [0.7, 1],
    [1, 1],
    [1.1, 2],
    [3, 5],
    [70, 100],
    [500, 500],
  ])('rounds %f up to %f', (length, rounded) => expect(roundUp(length)).toBeCloseTo(rounded));
});
