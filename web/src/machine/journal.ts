/** The events of the machine's journal. */

import type { Send } from './http';

export interface JournalEvent {
  /** Milliseconds since 1970. */
  readonly time: number;
  /** `resource`, `module`, `configuration`, `client`, `started`, `stopping`, `stopped`, … */
  readonly kind: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** As many as a short list shows. */
const USUAL_COUNT = 20;

/** The last events, oldest first. The machine sends at most 500; all of them may be megabytes. */
export async function readJournal(send: Send, last = USUAL_COUNT): Promise<JournalEvent[]> {
  return parseEvents(await (await send(`/history.json?last=${last}`)).json());
}

/** The events of an answer, oldest first. Anything else is left out. */
export function parseEvents(value: unknown): JournalEvent[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((each): JournalEvent[] => {
    if (typeof each !== 'object' || each === null) return [];
    const { time, event, ...details } = each as Record<string, unknown>;
    const at = Date.parse(String(time));
    return Number.isNaN(at) ? [] : [{ time: at, kind: String(event), details }];
  });
}

export type Tone = 'good' | 'bad' | 'neutral';

export interface EventText {
  readonly subject: string;
  readonly text: string;
  readonly reason: string;
  readonly tone: Tone;
}

/** An event as a sentence. */
export function describeEvent({ kind, details }: JournalEvent): EventText {
  const word = (key: string) => (details[key] === undefined || details[key] === null ? '' : String(details[key]));
  const reason = word('reason');
  switch (kind) {
    case 'resource': {
      const condition = word('state');
      const isBad = condition === 'unhealthy' || /failed|gave up|still/.test(condition);
      const tone = isBad ? 'bad' : condition === 'ready' ? 'good' : 'neutral';
      const seconds = word('seconds');
      return { subject: word('resource'), text: seconds ? `${condition} for ${seconds} s` : condition, reason, tone };
    }
    case 'module':
    case 'process': {
      const condition = word('state');
      const text = word('pid') ? `${condition}, pid ${word('pid')}` : condition;
      const tone = condition === 'failed' ? 'bad' : 'good';
      return { subject: `${kind} ${word(kind)}`, text, reason, tone };
    }
    case 'configuration': {
      const counts = `${word('ready')} ready, ${word('unhealthy')} not`;
      const text = `${word('revision')} applied in ${word('seconds')} s: ${counts}`;
      return { subject: 'configuration', text, reason, tone: details.unhealthy ? 'bad' : 'good' };
    }
    case 'client':
      return { subject: 'client', text: `${word('peer')} ${word('state')}`, reason, tone: 'neutral' };
    case 'started':
      return { subject: 'server', text: `started, version ${word('version')}`, reason, tone: 'neutral' };
    case 'stopping':
    case 'stopped':
      return { subject: 'server', text: kind, reason, tone: 'neutral' };
    default:
      return { subject: kind, text: JSON.stringify(details), reason: '', tone: 'neutral' };
  }
}
