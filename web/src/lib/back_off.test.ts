import { expect, test } from 'vitest';
import { backOff } from './back_off';

test('pauses double until they are as long as they may be', () => {
  expect([1, 2, 3, 6, 2000].map((failures) => backOff(failures, 1000, 30_000))).toEqual([1000, 2000, 4000, 30_000, 30_000]);
});
