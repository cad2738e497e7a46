import { expect, it } from 'vitest';
import { countByResource, describeCounts, isExplained } from './faults';
import { parseResources, type ConfigReport } from './status';

const REPORT: ConfigReport = {
  file: 'machine.json',
  state: 'faulty',
  running: 'this',
  since: 0,
  errors: 2,
  warnings: 1,
  diagnostics: [
    { severity: 'error', message: 'a', pointer: '/components/0/attributes/x', resource: 'rdk:component:motor/m' },
    { severity: 'warning', message: 'b', pointer: '/components/0', resource: 'rdk:component:motor/m' },
    { severity: 'error', message: 'c', pointer: '/log/0', resource: null },
  ],
};

it('counts in words', () => {
  expect(describeCounts({ errors: 1, warnings: 2 })).toBe('1 error, 2 warnings');
  expect(describeCounts({ errors: 0, warnings: 1 })).toBe('1 warning');
  expect(describeCounts({ errors: 0, warnings: 0 })).toBe('');
});

it('counts what is wrong with each resource', () => {
  expect([...countByResource(REPORT)]).toEqual([['rdk:component:motor/m', { errors: 1, warnings: 1 }]]);
});

it('says nothing about what runs instead of a refused file', () => {
  expect(countByResource({ ...REPORT, state: 'refused', running: 'earlier' }).size).toBe(0);
  expect(countByResource(null).size).toBe(0);
});

it('knows a reason that the faults say already', () => {
  const status = { name: 'rdk:component:motor/m', model: 'fake', state: 'unhealthy', since: 0, depends_on: [] } as const;
  const [faulty, broken, waiting] = [
    { ...status, reason: 'a (at /components/0/attributes/x)' },
    { ...status, reason: 'no such device' },
    { ...status, reason: 'depends on "x"' },
  ].map((each) => parseResources([each], [])[0]!);
  expect(isExplained(faulty!, REPORT)).toBe(true);
  expect(isExplained(broken!, REPORT)).toBe(false);
  const missing = { ...REPORT.diagnostics[0]!, message: '"m" depends on "x", which is not configured' };
  expect(isExplained(waiting!, { ...REPORT, diagnostics: [missing] })).toBe(true);
  expect(isExplained(faulty!, null)).toBe(false);
});
