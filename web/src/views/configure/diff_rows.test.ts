import { expect, it } from 'vitest';
import { cutLine, listDiffRows } from './diff_rows';

const LINES = Array.from({ length: 20 }, (_, index) => `line ${index}`);

it('shows what differs side by side, with a few lines around it', () => {
  const rows = listDiffRows(LINES.join('\n'), LINES.with(10, 'other').join('\n'));
  expect(rows[0]).toEqual({ skipped: 7 });
  expect(rows).toHaveLength(9);
  expect(rows[4]).toMatchObject({ left: { kind: 'removed', text: 'line 10' }, right: { kind: 'added', text: 'other' } });
});

it('shows nothing of equal texts', () => {
  expect(listDiffRows('a\nb', 'a\nb')).toEqual([{ skipped: 2 }]);
});

it('cuts long lines to where they differ', () => {
  const long = 'a'.repeat(5000);
  expect(cutLine('short', 'other')).toBe('short');
  expect(cutLine(`${long}b${long}`, `${long}c`)).toMatch(/^…a{100}ba{899}…$/);
  expect(cutLine(long, long)).toMatch(/^a{1000}…$/);
  expect(cutLine(long, '')).toMatch(/^a{1000}…$/);
});
