import { expect, test } from 'vitest';
import { countReasons, describeNext, describeSchedule, estimateRate, listRuns, parseJob } from './runs';

const job = parseJob({
  name: 'measure',
  configured: true,
  successes: [10, 30],
  failures: [
    { time: 20, reason: 'no answer' },
    { time: 40, reason: 'no answer' },
    { time: 35, reason: 'too hot' },
  ],
  skipped: 2,
});

test('runs are in the order of time', () => {
  expect(listRuns(job).map((each) => [each.time, each.reason])).toEqual([
    [10, null],
    [20, 'no answer'],
    [30, null],
    [35, 'too hot'],
    [40, 'no answer'],
  ]);
});

test('equal reasons are counted, the latest first', () => {
  expect(countReasons(job.failures)).toEqual([
    { reason: 'no answer', count: 2, last: 40 },
    { reason: 'too hot', count: 1, last: 35 },
  ]);
});

test('a job says when it runs next', () => {
  const describe = (value: object) => describeNext(parseJob({ name: 'j', ...value }), 1000);
  expect(describe({ next_run: 1240 })).toBe('next in 4 min');
  expect(describe({ next_run: 999 })).toBe('due now');
  expect(describe({ running_since: 988, next_run: null })).toBe('running for 12 s');
  expect(describe({ next_run: null })).toBe('');
});

test('a schedule can be read', () => {
  expect(['10m', '*/15 * * * *', 'Continuous', ''].map(describeSchedule)).toEqual(['every 10m', 'cron */15 * * * *', 'continuously', '']);
});

test('a job that the status describes otherwise has no runs', () => {
  expect(listRuns(parseJob({ name: 'odd', successes: 'none' }))).toEqual([]);
});

test('only frequent runs have a rate', () => {
  const at = (times: number[]) => estimateRate(times.map((time) => ({ time, reason: null })));
  expect(at([1, 1.1, 1.2, 1.3, 1.4])).toBeCloseTo(10);
  expect(at([1, 2, 3, 4, 5])).toBeNull();
  expect(at([1, 1, 1, 1, 1])).toBeNull();
  expect(at([1, 1.1])).toBeNull();
});
