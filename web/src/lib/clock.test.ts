import { describe, expect, it } from 'vitest';
import { formatClock, formatTime, parseTime } from './clock';

describe('times', () => {
  const evening = new Date(2026, 10, 15, 21, 3, 5, 7).getTime();

  it('have 24 hours', () => {
    expect(formatClock(evening)).toBe('21:03:05.007');
    expect(formatTime(evening)).toBe('2026-11-15 21:03:05');
  });

  it('are read as they are written', () => {
    expect(parseTime(formatTime(evening))).toBe(evening - 7);
    expect(parseTime('2026-11-15 21:03')).toBe(evening - 5007);
    expect(parseTime('9 pm')).toBeNaN();
  });
});
