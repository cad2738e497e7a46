import { diffLines, type DiffLine } from './line_diff';

/** Lines shown before and after a difference. */
const AROUND = 3;
const MAX_LENGTH = 1000;
/** Characters shown before the first difference of two long lines. */
const LEAD = 100;

/** A row of two texts side by side, or how many lines are the same in both. */
export type DiffRow = { readonly left?: DiffLine; readonly right?: DiffLine } | { readonly skipped: number };

/** What differs between two texts, with a few lines around it. */
export function listDiffRows(before: string, after: string): DiffRow[] {
  return sideBySide(withoutDistant(diffLines(before, after)));
}

/** The part of a line to show: of a long one, what is near its first difference from the other. */
export function cutLine(text: string, other: string): string {
  if (text.length <= MAX_LENGTH) return text;
  let same = 0;
  while (same < other.length && text[same] === other[same]) same += 1;
  const start = same >= text.length ? 0 : Math.max(0, same - LEAD);
  const end = start + MAX_LENGTH;
  return `${start > 0 ? '…' : ''}${text.slice(start, end)}${end < text.length ? '…' : ''}`;
}

function withoutDistant(lines: readonly DiffLine[]): (DiffLine | number)[] {
  const near = new Set<number>();
  lines.forEach((line, index) => {
    if (line.kind === 'same') return;
    for (let i = index - AROUND; i <= index + AROUND; i += 1) near.add(i);
  });
  const kept: (DiffLine | number)[] = [];
  let skipped = 0;
  lines.forEach((line, index) => {
    if (near.has(index)) {
      if (skipped) kept.push(skipped);
      skipped = 0;
      kept.push(line);
    } else skipped += 1;
  });
  if (skipped) kept.push(skipped);
  return kept;
}

function sideBySide(lines: readonly (DiffLine | number)[]): DiffRow[] {
  const found: DiffRow[] = [];
  let [left, right]: [DiffLine[], DiffLine[]] = [[], []];
  const flush = () => {
    for (let i = 0; i < Math.max(left.length, right.length); i += 1) found.push({ left: left[i], right: right[i] });
    [left, right] = [[], []];
  };
  for (const line of lines) {
    if (typeof line === 'number') {
      flush();
      found.push({ skipped: line });
    } else if (line.kind === 'removed') left.push(line);
    else if (line.kind === 'added') right.push(line);
    else {
      flush();
      found.push({ left: line, right: line });
    }
  }
  flush();
  return found;
}
