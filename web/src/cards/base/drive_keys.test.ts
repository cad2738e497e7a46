import { describe, expect, it } from 'vitest';
import { combine, directionOf } from './drive_keys';

const LIMIT = { linear: 300, angular: 45 };

describe('combine', () => {
  it('drives a curve for two directions', () => {
    expect(combine(new Set(['backward', 'left']), LIMIT)).toEqual({ linear: -300, angular: 45 });
  });

  it('cancels opposite directions', () => {
    expect(combine(new Set(['forward', 'backward', 'right']), LIMIT)).toEqual({ linear: 0, angular: -45 });
  });
});

it('knows the keys by their place', () => {
  expect(directionOf('KeyW')).toBe('forward');
  expect(directionOf('ArrowRight')).toBe('right');
  expect(directionOf('Tab')).toBeUndefined();
});
