import type { LogLine } from './line';

/** The lines of a span of time. */
export interface Bucket {
  readonly all: number;
  readonly warnings: number;
  readonly errors: number;
}

/** Counts lines in `count` equal spans between two times, in milliseconds since 1970. */
export function countLines(lines: Iterable<LogLine>, begin: number, end: number, count: number): Bucket[] {
  const buckets = Array.from({ length: count }, () => ({ all: 0, warnings: 0, errors: 0 }));
  const span = Math.max(1, end - begin);
  for (const line of lines) {
    if (line.time < begin || line.time > end) continue;
    const bucket = buckets[Math.min(count - 1, Math.floor(((line.time - begin) / span) * count))]!;
    bucket.all += 1;
    if (line.level === 'warn') bucket.warnings += 1;
    if (line.level === 'error' || line.level === 'critical') bucket.errors += 1;
  }
  return buckets;
}
