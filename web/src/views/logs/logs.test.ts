import { describe, expect, test } from 'vitest';
import { countLines } from './buckets';
import { EVERYTHING, makeMatcher, parseFilter } from './filter';
import { findLine, lineId, parseLine, type LogLine } from './line';
import { groupLoggers, shortLogger, splitLabel } from './loggers';
import { RepeatFilter } from './reader';
import { RowLayout } from './rows';
import { LogStore } from './store.svelte';

function text(given: Record<string, unknown> = {}): string {
  return JSON.stringify({ time: '2026-01-01T00:00:00.000Z', level: 'info', logger: 'rdk', message: 'm', ...given });
}

function line(given: Record<string, unknown> = {}, number = 0): LogLine {
  return parseLine(text(given), number)!;
}

describe('parseLine', () => {
  test('refuses what is not a line', () => {
    for (const each of ['', '{', 'null', '7', '{"time":"never"}']) expect(parseLine(each, 0)).toBeNull();
  });

  test('takes values of the wrong type as text', () => {
    expect(line({ message: { a: 1 }, logger: null, level: 'loud', fields: 'x' })).toMatchObject({
      message: '{"a":1}',
      logger: '',
      level: 'info',
      fields: null,
    });
  });
});

test('a line is found by its id after it was received again', () => {
  const lines = ['a', 'b', 'c'].map((message, index) => line({ message }, index));
  expect(findLine(lines, lineId(line({ message: 'b' }, 99)))).toBe(lines[1]);
  expect(findLine(lines, 'nonsense')).toBeUndefined();
});

describe('filter', () => {
  const passes = (query: string, given: Record<string, unknown>) => makeMatcher(parseFilter(new URLSearchParams(query)))(line(given));

  test('shows a level and those above it', () => {
    expect(['debug', 'info', 'warn', 'error', 'critical'].filter((level) => passes('level=warn', { level }))).toEqual([
      'warn',
      'error',
      'critical',
    ]);
  });

  test('matches one logger, or those below it too', () => {
    expect(passes('logger=rdk', { logger: 'rdk' })).toBe(true);
    expect(passes('logger=rdk', { logger: 'rdk.auth' })).toBe(false);
    expect(passes('logger=rdk.modmanager.a.*', { logger: 'rdk.modmanager.a' })).toBe(true);
    expect(passes('logger=rdk.modmanager.a.*', { logger: 'rdk.modmanager.a.StdOut' })).toBe(true);
    expect(passes('logger=rdk.modmanager.a.*', { logger: 'rdk.modmanager.ab' })).toBe(false);
  });

  test('finds text in the message, the fields and the trace', () => {
    expect(passes('text=NEEDLE', { message: 'a needle' })).toBe(true);
    expect(passes('text=needle', { fields: { x: 'Needle' } })).toBe(true);
    expect(passes('text=needle', { trace: 'Needle' })).toBe(true);
    expect(passes('text=needle', { message: 'hay' })).toBe(false);
  });

  test('ignores times that are none', () => {
    expect(parseFilter(new URLSearchParams('from=soon&to=x'))).toEqual(EVERYTHING);
    expect(passes('from=2026-01-01T00:00:01Z', {})).toBe(false);
    expect(passes('to=2025-01-01T00:00:01Z', {})).toBe(false);
  });
});

test('loggers are grouped by what they belong to', () => {
  const groups = groupLoggers(
    new Map([
      ['rdk', 2],
      ['rdk.modmanager.b', 1],
      ['rdk.modmanager.a', 4],
      ['rdk.resource_manager.rdk:component:motor/left', 3],
    ]),
  );
  expect(groups.map(({ title, count }) => [title, count])).toEqual([
    ['Resources', 3],
    ['Modules', 5],
    ['Server', 2],
  ]);
  expect(groups[1]!.loggers.map((each) => each.label)).toEqual(['a', 'b']);
  expect(shortLogger('rdk.resource_manager.rdk:component:motor/left')).toBe('motor/left');
});

test('rows below an open row are lower, and are found there', () => {
  const layout = new RowLayout(100, 20, [
    { index: 3, extra: 100 },
    { index: 10, extra: 40 },
  ]);
  expect(layout.height).toBe(2140);
  expect([3, 4, 11].map((each) => layout.top(each))).toEqual([60, 180, 360]);
  for (let index = 0; index < 100; index++) expect(layout.indexAt(layout.top(index))).toBe(index);
  expect(layout.indexAt(179)).toBe(3);
  expect(layout.indexAt(1e9)).toBe(99);
  expect(layout.indexAt(-5)).toBe(0);
});

test('lines are counted in spans of time', () => {
  const at = (second: number, level: string) => line({ time: new Date(second * 1000).toISOString(), level });
  const lines = [at(0, 'info'), at(4, 'error'), at(10, 'warn'), at(11, 'info')];
  expect(countLines(lines, 0, 10_000, 2)).toEqual([
    { all: 2, warnings: 0, errors: 1 },
    { all: 1, warnings: 1, errors: 0 },
  ]);
});

test('lines that are sent again are recognized, and equal new ones are not lost', () => {
  const filter = new RepeatFilter(10);
  expect(['a', 'b', 'b'].map((each) => filter.isNew(each))).toEqual([true, true, true]);
  filter.startOver();
  expect(['a', 'b', 'b', 'b', 'c'].map((each) => filter.isNew(each))).toEqual([false, false, false, true, true]);
});

describe('store', () => {
  test('keeps the last lines and their counts', () => {
    const store = new LogStore(100);
    store.setFilter({ ...EVERYTHING, text: 'even' });
    for (let number = 0; number < 1000; number++)
      store.append([text({ message: number % 2 ? 'odd' : 'even', logger: number < 500 ? 'old' : 'new' })]);
    expect(store.lines.length).toBeLessThanOrEqual(100);
    expect(store.lines.at(-1)!.number).toBe(999);
    expect([...store.counts]).toEqual([['new', store.lines.length]]);
    expect(store.shown).toEqual(store.lines.filter((each) => each.message === 'even'));
  });

  test('is bounded in characters, too', () => {
    const store = new LogStore(100, 10_000);
    for (let number = 0; number < 50; number++) store.append([text({ message: 'x'.repeat(1000) })]);
    expect(store.lines.reduce((sum, each) => sum + each.size, 0)).toBeLessThanOrEqual(10_000);
    expect(store.lines.length).toBeGreaterThan(5);
  });
});

test('the end of a name is kept apart', () => {
  expect(['scales.StdOut', 'camera/gate', 'acme', '.hidden'].map(splitLabel)).toEqual([
    ['scales', '.StdOut'],
    ['camera', '/gate'],
    ['acme', ''],
    ['.hidden', ''],
  ]);
});
