import { expect, it } from 'vitest';
import { diffLines } from './line_diff';

it('shows what was removed and what was added', () => {
  const lines = diffLines('a\nb\nc\nd', 'a\nx\nc\nd\ne');
  expect(lines.map((each) => `${each.kind[0]} ${each.before} ${each.after} ${each.text}`)).toEqual([
    's 1 1 a',
    'r 2 0 b',
    'a 0 2 x',
    's 3 3 c',
    's 4 4 d',
    'a 0 5 e',
  ]);
});

it('finds nothing between equal texts', () => {
  expect(diffLines('a\nb', 'a\nb').every((each) => each.kind === 'same')).toBe(true);
});

it('keeps every line of both texts', () => {
  const [before, after] = ['q\nw\ne\nr\nt', 'w\nq\nr\ne\nz\nt'];
  const lines = diffLines(before, after);
  expect(
    lines
      .filter((each) => each.kind !== 'added')
      .map((each) => each.text)
      .join('\n'),
  ).toBe(before);
  expect(
    lines
      .filter((each) => each.kind !== 'removed')
      .map((each) => each.text)
      .join('\n'),
  ).toBe(after);
});
