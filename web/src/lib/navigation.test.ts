import { expect, it } from 'vitest';
import { fromSpot, shortenEnum, toHeading, toSpot } from './navigation';

const ORIGIN = { latitude: 40.7, longitude: -73.98 };

it('reads poses in millimeters, counterclockwise from x', () => {
  const position = { pose: { x: 1500, y: -500, theta: 90 } };
  expect(toSpot(position, ORIGIN)).toEqual({ x: 1.5, y: -0.5 });
  expect(toHeading(position)).toBe(0);
});

it('reads coordinates relative to the origin', () => {
  const position = { geoPose: { location: { latitude: 40.701, longitude: -73.98 }, heading: 45 } };
  expect(toSpot(position, ORIGIN)!.y).toBeCloseTo(111.2, 0);
  expect(toHeading(position)).toBe(45);
});

it('writes what it reads', () => {
  for (const isGps of [true, false]) {
    const spot = toSpot(fromSpot({ x: 3, y: 4 }, isGps, ORIGIN), ORIGIN)!;
    expect(spot.x).toBeCloseTo(3);
    expect(spot.y).toBeCloseTo(4);
  }
});

it('knows nothing of an empty position', () => {
  expect(toSpot({}, ORIGIN)).toBeNull();
  expect(toHeading(undefined)).toBeNull();
});

it('shortens the names of states', () => expect(shortenEnum('GOAL_STATE_ACTIVE', 'GOAL_STATE_')).toBe('active'));
