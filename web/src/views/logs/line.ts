/** A line of the machine's log. */

import { hash } from '../../lib/hash';

export const LEVELS = ['debug', 'info', 'warn', 'error', 'critical'] as const;
export type Level = (typeof LEVELS)[number];

export interface LogLine {
  /** Counts the lines that this page received. */
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly level: Level;
  readonly logger: string;
  /** Where it was logged, such as `drive.py:50`. */
  readonly place: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>> | null;
  readonly trace: string;
  /** Characters that the line takes in memory. */
  readonly size: number;
}

/** Returns null if the text is not a log line. */
export function parseLine(text: string, number: number): LogLine | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const given = value as Record<string, unknown>;
  const time = Date.parse(String(given.time));
  if (Number.isNaN(time)) return null;
  const { fields } = given;
  return {
    number,
    time,
    level: LEVELS.find((each) => each === given.level) ?? 'info',
    logger: asText(given.logger),
    place: asText(given.place),
    message: asText(given.message),
    fields: typeof fields === 'object' && fields !== null ? (fields as Record<string, unknown>) : null,
    trace: asText(given.trace),
    size: text.length,
  };
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);
}

/** Identifies a line in an address, also after the page was reloaded. */
export function lineId(line: LogLine): string {
  return `${line.time}-${hash(`${line.logger}\n${line.message}`).toString(36)}`;
}

/** The line with this id. Several lines may have it; they say the same at the same time. */
export function findLine(lines: readonly LogLine[], id: string): LogLine | undefined {
  const time = Number(id.split('-')[0]);
  return lines.find((each) => each.time === time && lineId(each) === id);
}

/** The whole line as text, for the clipboard. */
export function formatLine(line: LogLine): string {
  const head = [new Date(line.time).toISOString(), line.level.toUpperCase(), line.logger, line.place, line.message];
  const fields = line.fields ? [JSON.stringify(line.fields)] : [];
  return [[...head, ...fields].join('\t'), ...(line.trace ? [line.trace] : [])].join('\n');
}
