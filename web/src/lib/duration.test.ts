import { expect, it } from 'vitest';
import { formatDuration, formatNumber } from './duration';

it('writes numbers with as many digits as help', () => {
  expect([212.4, 0.123456, 1234.567, 1e-7, 3, Number.NaN, 1e20].map(formatNumber)).toEqual([
    '212.4',
    '0.123',
    '1234.6',
    '1.00e-7',
    '3',
    'NaN',
    '1.000e+20',
  ]);
});

it('writes time spans in one unit', () => {
  expect([0.44, 12.3, 100, 7200, 200_000].map(formatDuration)).toEqual(['0.4 s', '12 s', '2 min', '2 h', '2 d']);
});
