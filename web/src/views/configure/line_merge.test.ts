import { expect, it } from 'vitest';
import { isConflict, mergeTexts, resolveText, type Choice } from './line_merge';

const BASE = `{
  "components": [
    {"name": "a", "width": 1},
    {"name": "b"}
  ]
}
`;
const add = (text: string, name: string) => text.replace('{"name": "b"}', `{"name": "b"},\n    {"name": "${name}"}`);

function merge(base: string | null, mine: string, theirs: string, ...choices: Choice[]): string {
  return resolveText(mergeTexts(base, mine, theirs), choices);
}

function countConflicts(base: string | null, mine: string, theirs: string): number {
  return mergeTexts(base, mine, theirs).filter(isConflict).length;
}

it('merges changes of different places', () => {
  const [mine, theirs] = [BASE.replace('"width": 1', '"width": 2'), add(BASE, 'c')];
  expect(countConflicts(BASE, mine, theirs)).toBe(0);
  expect(merge(BASE, mine, theirs)).toBe(add(mine, 'c'));
  expect(merge(BASE, theirs, mine)).toBe(add(mine, 'c'));
});

it('lets one choose between changes of the same value', () => {
  const [mine, theirs] = [BASE.replace('"width": 1', '"width": 2'), BASE.replace('"width": 1', '"width": 3')];
  expect(countConflicts(BASE, mine, theirs)).toBe(1);
  expect(merge(BASE, mine, theirs, 'mine')).toBe(mine);
  expect(merge(BASE, mine, theirs, 'theirs')).toBe(theirs);
});

it('keeps both of what was added at the same place, with the comma between', () => {
  const merged = merge(BASE, add(BASE, 'mine'), add(BASE, 'theirs'), 'both');
  const names = (JSON.parse(merged) as { components: { name: string }[] }).components.map((each) => each.name);
  expect(names).toEqual(['a', 'b', 'mine', 'theirs']);
});

it('takes the same change of both once', () => {
  const changed = add(BASE, 'c');
  expect(countConflicts(BASE, changed, changed)).toBe(0);
  expect(merge(BASE, changed, changed)).toBe(changed);
});

it('keeps comments and removals', () => {
  const mine = `// mine\n${BASE}`;
  const theirs = BASE.replace(',\n    {"name": "b"}', '');
  expect(merge(BASE, mine, theirs)).toBe(`// mine\n${theirs}`);
});

it('loses nothing if it does not know what both began with', () => {
  const mine = BASE.replace('"width": 1', '"width": 2');
  const theirs = `${add(BASE, 'c')}// theirs\n`;
  const merged = merge(null, mine, theirs, 'both');
  for (const line of [...mine.split('\n'), ...theirs.split('\n')]) expect(merged).toContain(line.replace(/,$/, ''));
});

it('has every line of both sides if both are kept', () => {
  // Pseudo-random edits, the same ones every time.
  let seed = 7;
  const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
  const lines = Array.from({ length: 12 }, (_, index) => `line ${index}`);
  const edit = (name: string) =>
    lines.flatMap((line, index) => [[line], [`${name} ${index}`], [line, `${name} ${index}`], [line], [line]][random(5)]!).join('\n');
  for (let round = 0; round < 300; round += 1) {
    const [mine, theirs] = [edit('mine'), edit('theirs')];
    const parts = mergeTexts(lines.join('\n'), mine, theirs);
    const merged = resolveText(
      parts,
      parts.map(() => 'both'),
    ).replaceAll(',', '');
    for (const line of [...mine.split('\n'), ...theirs.split('\n')]) {
      if (/^(mine|theirs)/.test(line)) expect(merged.split('\n')).toContain(line);
    }
    expect(merge(lines.join('\n'), mine, lines.join('\n'))).toBe(mine);
  }
});
