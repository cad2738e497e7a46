/** What the status says about jobs. */

import { formatDuration } from '../../lib/duration';

export interface JobFailure {
  readonly time: number;
  readonly reason: string;
}

export interface JobRecord {
  readonly name: string;
  readonly configured: boolean;
  readonly successes: readonly number[];
  readonly failures: readonly JobFailure[];
  readonly skipped: number;
  /** As it is configured; empty if it is not. */
  readonly schedule: string;
  /** Seconds since 1970. */
  readonly runningSince: number | null;
  readonly nextRun: number | null;
}

/** The end of a run, in seconds since 1970; with a reason if it failed. */
export interface Run {
  readonly time: number;
  readonly reason: string | null;
}

export function parseJob(value: Readonly<Record<string, unknown>>): JobRecord {
  const failures = Array.isArray(value.failures) ? (value.failures as JobFailure[]) : [];
  return {
    name: String(value.name),
    configured: value.configured === true,
    successes: Array.isArray(value.successes) ? (value.successes as number[]) : [],
    failures: failures.map(({ time, reason }) => ({ time, reason: String(reason) })),
    skipped: asNumber(value.skipped) ?? 0,
    schedule: typeof value.schedule === 'string' ? value.schedule : '',
    runningSince: asNumber(value.running_since),
    nextRun: asNumber(value.next_run),
  };
}

function asNumber(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

/** What the job does next; empty if it will not run again. */
export function describeNext(job: JobRecord, now: number): string {
  if (job.runningSince !== null) return `running for ${formatDuration(now - job.runningSince)}`;
  if (job.nextRun === null) return '';
  const left = job.nextRun - now;
  return left > 0 ? `next in ${formatDuration(left)}` : 'due now';
}

/** A schedule for reading: `every 10m`, `cron 0 12 * * *`, `continuously`. */
export function describeSchedule(schedule: string): string {
  const text = schedule.trim();
  if (text === '') return '';
  if (text.toLowerCase() === 'continuous') return 'continuously';
  return text.includes(' ') ? `cron ${text}` : `every ${text}`;
}

/** The recent runs, oldest first. */
export function listRuns(job: JobRecord): Run[] {
  const runs: Run[] = [...job.successes.map((time) => ({ time, reason: null })), ...job.failures];
  return runs.toSorted((a, b) => a.time - b.time);
}

export interface ReasonCount {
  readonly reason: string;
  readonly count: number;
  /** When it was last the reason. */
  readonly last: number;
}

/** The reasons of failures, the latest first. */
export function countReasons(failures: readonly JobFailure[]): ReasonCount[] {
  const found = new Map<string, ReasonCount>();
  for (const { time, reason } of failures) {
    const before = found.get(reason);
    found.set(reason, { reason, count: (before?.count ?? 0) + 1, last: Math.max(before?.last ?? 0, time) });
  }
  return [...found.values()].sort((a, b) => b.last - a.last);
}

/** Runs in a second if they are too frequent to be drawn one by one, else null. */
export function estimateRate(runs: readonly Run[]): number | null {
  const [first, last] = [runs[0], runs.at(-1)];
  if (first === undefined || last === undefined || runs.length < 5) return null;
  const span = last.time - first.time;
  return span > 0 && span < 1 ? (runs.length - 1) / span : null;
}
