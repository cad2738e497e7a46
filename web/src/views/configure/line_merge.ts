/** A three-way merge of texts, line by line. Whether a line ends with a comma does not make it another line. */

import { diffLines } from './line_diff';

export type MergePart = { readonly lines: readonly string[] } | Conflict;

/** Lines that both sides changed, each in its own way. */
export interface Conflict {
  readonly mine: readonly string[];
  readonly theirs: readonly string[];
}

export type Choice = 'mine' | 'theirs' | 'both';

export function isConflict(part: MergePart): part is Conflict {
  return 'mine' in part;
}

/** Merges two texts that were made from one. If that one is unknown, what only one side has is kept. */
export function mergeTexts(base: string | null, mine: string, theirs: string): MergePart[] {
  const [b, m, t] = [base ?? commonText(mine, theirs), mine, theirs].map((text) => text.split('\n')) as [string[], string[], string[]];
  const [inMine, inTheirs] = [matchLines(b, m), matchLines(b, t)];
  const parts: MergePart[] = [];
  let [i, j, k] = [0, 0, 0];
  for (let next = 0; next <= b.length; next += 1) {
    const [atMine, atTheirs] = next < b.length ? [inMine.get(next), inTheirs.get(next)] : [m.length, t.length];
    if (atMine === undefined || atTheirs === undefined) continue;
    parts.push(mergeLines(b.slice(i, next), m.slice(j, atMine), t.slice(k, atTheirs)));
    if (next < b.length) parts.push({ lines: [mergeLine(b[next]!, m[atMine]!, t[atTheirs]!)] });
    [i, j, k] = [next + 1, atMine + 1, atTheirs + 1];
  }
  return joinParts(parts);
}

/** The merged text. `choices` has one for each conflict, in their order. */
export function resolveText(parts: readonly MergePart[], choices: readonly Choice[]): string {
  let conflict = 0;
  const lines = parts.flatMap((part) => {
    if (!isConflict(part)) return part.lines;
    const choice = choices[conflict++] ?? 'both';
    return choice === 'both' ? joinLines(part.mine, part.theirs) : part[choice];
  });
  return lines.join('\n');
}

function mergeLines(base: readonly string[], mine: readonly string[], theirs: readonly string[]): MergePart {
  if (isSame(mine, base)) return { lines: theirs };
  if (isSame(theirs, base) || isSame(mine, theirs)) return { lines: mine };
  return { mine, theirs };
}

function mergeLine(base: string, mine: string, theirs: string): string {
  return mine === base ? theirs : mine;
}

/** Both lists, with the comma that JSON needs between them. */
function joinLines(first: readonly string[], second: readonly string[]): string[] {
  const last = first.findLastIndex((line) => line.trim() !== '');
  const next = second.find((line) => line.trim() !== '')?.trim() ?? '';
  const end = first[last]?.trimEnd() ?? '';
  const needsComma = end !== '' && !/[,{[]$/.test(end) && next !== '' && !/^[}\]]/.test(next) && !/^\s*\/\//.test(end);
  return [...first.map((line, index) => (needsComma && index === last ? `${end},` : line)), ...second];
}

/** The lines of the base that another text has, with their places in it. */
function matchLines(base: readonly string[], other: readonly string[]): ReadonlyMap<number, number> {
  const lines = diffLines(base.map(withoutComma).join('\n'), other.map(withoutComma).join('\n'));
  return new Map(lines.filter((each) => each.kind === 'same').map((each) => [each.before - 1, each.after - 1]));
}

function commonText(mine: string, theirs: string): string {
  return diffLines(mine, theirs)
    .filter((each) => each.kind === 'same')
    .map((each) => each.text)
    .join('\n');
}

function joinParts(parts: readonly MergePart[]): MergePart[] {
  const joined: MergePart[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (isConflict(part) || last === undefined || isConflict(last)) joined.push(part);
    else joined[joined.length - 1] = { lines: [...last.lines, ...part.lines] };
  }
  return joined.filter((part) => isConflict(part) || part.lines.length > 0);
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((line, index) => withoutComma(line) === withoutComma(b[index]!));
}

function withoutComma(line: string): string {
  return line.replace(/,(\r?)$/, '$1');
}
