/** The loggers of the machine in groups, with the number of their lines. */

export interface LoggerCount {
  /** The part of the name that the group does not say. */
  readonly label: string;
  readonly logger: string;
  readonly count: number;
}

export interface LoggerGroup {
  readonly title: string;
  /** The filter for the whole group; empty if it has none. */
  readonly filter: string;
  readonly count: number;
  readonly loggers: readonly LoggerCount[];
}

const GROUPS = [
  { title: 'Resources', prefix: 'rdk.resource_manager.' },
  { title: 'Modules', prefix: 'rdk.modmanager.' },
  { title: 'Processes', prefix: 'rdk.process.' },
  { title: 'Jobs', prefix: 'rdk.job_manager.' },
  { title: 'Clients', prefix: 'client.' },
] as const;
const SERVER = 'Server';

export function groupLoggers(counts: ReadonlyMap<string, number>): LoggerGroup[] {
  const found = new Map<string, LoggerCount[]>();
  for (const [logger, count] of counts) {
    const group = GROUPS.find((each) => logger.startsWith(each.prefix));
    const title = group?.title ?? SERVER;
    const label = shortLogger(logger);
    found.set(title, [...(found.get(title) ?? []), { label, logger, count }]);
  }
  return [...GROUPS, { title: SERVER, prefix: '' }].flatMap(({ title, prefix }) => {
    const loggers = found.get(title);
    if (loggers === undefined) return [];
    const count = loggers.reduce((sum, each) => sum + each.count, 0);
    const filter = prefix ? `${prefix}*` : '';
    return [{ title, filter, count, loggers: loggers.toSorted((a, b) => a.label.localeCompare(b.label)) }];
  });
}

/** The name of a logger without what its group says: `motor/left` for a resource. */
export function shortLogger(logger: string): string {
  const group = GROUPS.find((each) => logger.startsWith(each.prefix));
  const label = group ? logger.slice(group.prefix.length) : logger;
  return group?.title === 'Resources' ? label.replace(/^[^:/]*:[^:/]*:/, '') : label;
}

/** Splits a name, so that a narrow column can shorten its beginning and keep its end: `scales` and `.StdOut`. */
export function splitLabel(label: string): [string, string] {
  const index = Math.max(label.lastIndexOf('.'), label.lastIndexOf('/'));
  return index > 0 ? [label.slice(0, index), label.slice(index)] : [label, ''];
}
