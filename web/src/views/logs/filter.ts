import { LEVELS, type Level, type LogLine } from './line';

export interface LogFilter {
  /** The lowest level that is shown. */
  readonly level: Level;
  /** A logger, or with `.*` at its end, a logger and those below it; empty: all. */
  readonly logger: string;
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
}

export const EVERYTHING: LogFilter = { level: 'debug', logger: '', text: '', from: -Infinity, to: Infinity };

export function parseFilter(params: URLSearchParams): LogFilter {
  return {
    level: LEVELS.find((each) => each === params.get('level')) ?? 'debug',
    logger: params.get('logger') ?? '',
    text: params.get('text') ?? '',
    from: parseTime(params.get('from')) ?? -Infinity,
    to: parseTime(params.get('to')) ?? Infinity,
  };
}

function parseTime(text: string | null): number | null {
  const time = text ? Date.parse(text) : NaN;
  return Number.isNaN(time) ? null : time;
}

/** Returns a function that says whether a line passes the filter. */
export function makeMatcher(filter: LogFilter): (line: LogLine) => boolean {
  const levels = new Set<Level>(LEVELS.slice(LEVELS.indexOf(filter.level)));
  const text = filter.text.toLowerCase();
  const isBelow = filter.logger.endsWith('.*');
  const logger = isBelow ? filter.logger.slice(0, -2) : filter.logger;
  return (line) =>
    levels.has(line.level) &&
    line.time >= filter.from &&
    line.time <= filter.to &&
    (!logger || line.logger === logger || (isBelow && line.logger.startsWith(`${logger}.`))) &&
    (!text || contains(line, text));
}

function contains(line: LogLine, text: string): boolean {
  return (
    line.message.toLowerCase().includes(text) ||
    line.logger.toLowerCase().includes(text) ||
    line.trace.toLowerCase().includes(text) ||
    (line.fields !== null && JSON.stringify(line.fields).toLowerCase().includes(text))
  );
}
