import { expect, test } from 'vitest';
import { formatBytes } from './bytes';

test('a size has the unit that needs the fewest digits', () => {
  expect([0, 512, 999, 1000, 9949, 38_400_000, 999_600_000, 1_240_000_000, 5e15].map(formatBytes)).toEqual([
    '0 B',
    '512 B',
    '999 B',
    '1.0 KB',
    '9.9 KB',
    '38 MB',
    '1.0 GB',
    '1.2 GB',
    '5000 TB',
  ]);
});
