import { describe, expect, test } from 'vitest';
import { gridStep, Orbit } from './orbit';

const round = (values: readonly number[]) => values.map((each) => Math.round(each * 1000) / 1000 + 0);

describe('orbit', () => {
  test('the camera stays at its distance while it turns, and never goes over the top', () => {
    const orbit = new Orbit();
    orbit.turn(1, 10);
    expect(Math.hypot(...orbit.position)).toBeCloseTo(3, 9);
    expect(orbit.elevation).toBeLessThan(Math.PI / 2);
  });

  test('from the right, the camera is on the x axis and panning right moves along y', () => {
    const orbit = new Orbit();
    orbit.look('right');
    expect(round(orbit.position)).toEqual([3, 0, 0]);
    orbit.pan(1, 0.5);
    expect(round(orbit.target)).toEqual([0, 3, 1.5]);
  });

  test('what fits is all in the picture, whichever side is narrower', () => {
    const orbit = new Orbit();
    orbit.fit([1, 2, 3], 2, Math.PI / 3, Math.PI / 2);
    expect(orbit.target).toEqual([1, 2, 3]);
    expect(orbit.distance).toBeGreaterThan(4);
    orbit.zoom(0);
    expect(orbit.distance).toBeGreaterThan(0);
  });

  test('a grid has lines that one can count', () => {
    expect([0.1, 3, 5, 50, 1e9].map(gridStep).map((each) => Number(each.toFixed(3)))).toEqual([0.01, 0.1, 1, 10, 1000]);
  });
});
