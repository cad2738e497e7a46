import { expect, test } from 'vitest';
import { UseRate } from './use_rate';

test('the first count has no rate', () => {
  expect(new UseRate().add(10, 5)).toBeNull();
});

test('the rate is the average of the window', () => {
  const rate = new UseRate(4);
  rate.add(0, 0);
  expect(rate.add(2, 1)).toBe(0.5);
  expect(rate.add(4, 4)).toBe(1);
  expect(rate.add(6, 4)).toBe(0.75);
  expect(rate.add(100, 4)).toBeCloseTo(0);
});

test('a count that was already read changes nothing', () => {
  const rate = new UseRate();
  rate.add(0, 0);
  expect(rate.add(2, 1)).toBe(0.5);
  expect(rate.add(2, 1)).toBe(0.5);
});

test('a process that was started again has no rate at first', () => {
  const rate = new UseRate();
  rate.add(100, 50);
  rate.add(102, 51);
  expect(rate.add(1, 0.2)).toBeNull();
  expect(rate.add(3, 0.4)).toBeCloseTo(0.1);
});
