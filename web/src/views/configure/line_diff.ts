/** The difference of two texts, line by line. */

export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
  /** Numbers of the line before and after, from 1; 0 where it does not exist. */
  readonly before: number;
  readonly after: number;
}

/** Lines beyond which nothing common is searched for: both texts are shown whole. */
const MAX_LINES = 4000;

export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middleA = a.slice(start, a.length - end);
  const middleB = b.slice(start, b.length - end);
  const same = (index: number, offset: number): DiffLine => ({
    kind: 'same',
    text: a[index]!,
    before: index + 1,
    after: index + 1 + offset,
  });
  return [
    ...Array.from({ length: start }, (_, index) => same(index, 0)),
    ...diffMiddle(middleA, middleB).map((line) => ({
      ...line,
      before: line.before && line.before + start,
      after: line.after && line.after + start,
    })),
    ...Array.from({ length: end }, (_, index) => same(a.length - end + index, b.length - a.length)),
  ];
}

function diffMiddle(a: readonly string[], b: readonly string[]): DiffLine[] {
  const removed = (index: number): DiffLine => ({ kind: 'removed', text: a[index]!, before: index + 1, after: 0 });
  const added = (index: number): DiffLine => ({ kind: 'added', text: b[index]!, before: 0, after: index + 1 });
  if (a.length > MAX_LINES || b.length > MAX_LINES) return [...a.map((_, i) => removed(i)), ...b.map((_, i) => added(i))];
  const lengths = commonLengths(a, b);
  const width = b.length + 1;
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i]!, before: i + 1, after: j + 1 });
      i += 1;
      j += 1;
    } else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) lines.push(removed(i++));
    else lines.push(added(j++));
  }
  while (i < a.length) lines.push(removed(i++));
  while (j < b.length) lines.push(added(j++));
  return lines;
}

/** The length of the longest common subsequence of what follows each pair of lines. */
function commonLengths(a: readonly string[], b: readonly string[]): Uint16Array {
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        a[i] === b[j] ? lengths[(i + 1) * width + j + 1]! + 1 : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
    }
  }
  return lengths;
}
