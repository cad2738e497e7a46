import { expect, it } from 'vitest';
import { chooseReading } from './reading';

it('is the same in whatever order the readings come', () => {
  expect(chooseReading({ b: 1, a: 2, name: 'x' }, '')).toBe('a');
  expect(chooseReading({ name: 'x', a: 2, b: 1 }, '')).toBe('a');
});

it('stays the same while the sensor has it', () => {
  expect(chooseReading({ a: 2, b: 1 }, 'b')).toBe('b');
  expect(chooseReading({ a: 2, b: null }, 'b')).toBe('a');
  expect(chooseReading({ name: 'x' }, 'b')).toBe('');
});
