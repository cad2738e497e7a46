import { expect, test } from 'vitest';
import { chooseSpan, drawLine, findNearest, roundUp } from './time_axis';

test('the span grows with the points, up to ten minutes', () => {
  expect([0, 60_000, 60_001, 400_000, 5_000_000].map((end) => chooseSpan(0, end) / 60_000)).toEqual([1, 1, 2, 10, 10]);
});

test('the end of an axis is a round number', () => {
  expect([0, NaN, 0.03, 1, 1.2, 5, 6, 130].map(roundUp)).toEqual([1, 1, 0.05, 1, 2, 5, 10, 200]);
});

test('the nearest point is found', () => {
  const points = [10, 20, 30].map((time) => ({ time }));
  expect([0, 14, 16, 99].map((time) => findNearest(points, time)?.time)).toEqual([10, 10, 20, 30]);
  expect(findNearest([], 1)).toBeUndefined();
});

test('a line has a gap where nothing is known', () => {
  const points = [1, NaN, 3, 4].map((value, time) => ({ time, value }));
  const same = (each: number) => each;
  expect(drawLine(points, same, same)).toBe('M0.0 1.0M2.0 3.0L3.0 4.0');
});
