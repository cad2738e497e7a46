import { expect, test } from 'vitest';
import type { PackageStatus } from '../../machine/status';
import { formatProgress } from './progress';

const status = (state: string, done: number, total: number | null) => ({ state, done, total }) as PackageStatus;

test('a package shows its progress while it is downloaded and unpacked', () => {
  expect(formatProgress(status('downloading', 999, 2_100_000_000))).toBe('0 % of 2.1 GB');
  expect(formatProgress(status('unpacking', 700, 1000))).toBe('70 % of 1.0 KB');
});

test('a package shows no progress without a size, before the download and after it', () => {
  expect(formatProgress(status('downloading', 999, null))).toBe('');
  expect(formatProgress(status('waiting', 0, null))).toBe('');
  expect(formatProgress(status('ready', 1000, 1000))).toBe('');
  expect(formatProgress(status('failed', 500, 1000))).toBe('');
});
