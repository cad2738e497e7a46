import { makeMatcher, EVERYTHING, type LogFilter } from './filter';
import { parseLine, type LogLine } from './line';

const MAX_LINES = 20_000;
const MAX_CHARACTERS = 32 << 20;

/** The last lines that were received, and the ones that pass the filter. */
export class LogStore {
  /** Changes with every change of the lines, which are plain arrays for speed. */
  version = $state(0);
  lines: LogLine[] = [];
  shown: LogLine[] = [];
  counts = new Map<string, number>();
  /** Changes when lines disappear or return, so that rows are elsewhere than before. */
  epoch = 0;

  #matches = makeMatcher(EVERYTHING);
  #number = 0;
  #size = 0;

  constructor(
    readonly maxLines = MAX_LINES,
    readonly maxCharacters = MAX_CHARACTERS,
  ) {}

  append(texts: readonly string[]): void {
    for (const text of texts) {
      const line = parseLine(text, this.#number);
      if (line === null) continue;
      this.#number += 1;
      this.#size += line.size;
      this.lines.push(line);
      this.counts.set(line.logger, (this.counts.get(line.logger) ?? 0) + 1);
      if (this.#matches(line)) this.shown.push(line);
    }
    this.#trim();
    this.version += 1;
  }

  setFilter(filter: LogFilter): void {
    this.#matches = makeMatcher(filter);
    this.shown = this.lines.filter(this.#matches);
    this.epoch += 1;
    this.version += 1;
  }

  clear(): void {
    this.lines = [];
    this.shown = [];
    this.counts = new Map();
    this.#size = 0;
    this.epoch += 1;
    this.version += 1;
  }

  /** Drops more than it must, so that it is not done for every line. */
  #trim(): void {
    if (this.lines.length <= this.maxLines && this.#size <= this.maxCharacters) return;
    const [wantedLines, wantedSize] = [this.maxLines * 0.95, this.maxCharacters * 0.95];
    let count = 0;
    while (this.lines.length - count > wantedLines || this.#size > wantedSize) {
      const line = this.lines[count++]!;
      this.#size -= line.size;
      const left = this.counts.get(line.logger)! - 1;
      if (left > 0) this.counts.set(line.logger, left);
      else this.counts.delete(line.logger);
    }
    const first = this.lines[count]?.number ?? Infinity;
    this.lines = this.lines.slice(count);
    this.shown = this.shown.slice(findIndex(this.shown, first));
    this.epoch += 1;
  }
}

/** The index of the first line with this number or a higher one. */
export function findIndex(lines: readonly LogLine[], number: number): number {
  let [low, high] = [0, lines.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle]!.number < number) low = middle + 1;
    else high = middle;
  }
  return low;
}
