import { expect, it } from 'vitest';
import { Odometer } from './odometer.svelte';
import { REST } from './odometry';

it('follows the commanded velocities', () => {
  const odometer = new Odometer();
  odometer.setVelocity({ linear: 100, angular: 0 }, 5000);
  odometer.update(6000);
  odometer.setVelocity({ linear: 0, angular: 90 }, 7000);
  odometer.setVelocity(REST, 8000);
  odometer.update(20_000);
  expect(odometer.pose.y).toBeCloseTo(200);
  expect(odometer.pose.heading).toBeCloseTo(90);
});

it('keeps a bounded path', () => {
  const odometer = new Odometer();
  odometer.setVelocity({ linear: 1000, angular: 0 }, 0);
  for (let time = 0; time < 50_000; time += 16) odometer.update(time);
  expect(odometer.points.length).toBe(2000);
  expect(odometer.points.at(-1)).toEqual(odometer.pose);
});

it('does not keep a point for every instant of a turn in place', () => {
  const odometer = new Odometer();
  odometer.setVelocity({ linear: 0, angular: 90 }, 0);
  for (let time = 0; time < 5000; time += 16) odometer.update(time);
  expect(odometer.points.length).toBeLessThan(5);
});
