import { describeError } from '../../machine/errors';
import type { Send } from '../../machine/http';
import { hash } from '../../lib/hash';

const CONNECT_TIMEOUT = 5000;
const FIRST_PAUSE = 500;
const MAX_PAUSE = 5000;
/** Lines that the machine keeps, and therefore sends again to a client that connects again. */
const MAX_REPEATED = 5000;
/** Characters that wait for the next frame before the stream is read on. */
const MAX_PENDING = 2 << 20;
/** Characters of one line. The machine's own lines are shorter; more would only fill the memory. */
const MAX_LINE = 4 << 20;

export interface LogReaderEvents {
  /** Lines as JSON, at most once for each frame that the browser draws. */
  readonly receive: (texts: readonly string[]) => void;
  /** Why there is no connection; empty if there is one. */
  readonly report: (problem: string) => void;
}

/** Follows the log until the signal, and connects again by itself. `query` has what the machine filters. */
export async function readLogs(
  send: Send,
  query: URLSearchParams,
  events: LogReaderEvents,
  signal: AbortSignal,
  repeats = new RepeatFilter(),
): Promise<void> {
  const path = `/logs.jsonl?${new URLSearchParams([...query, ['follow', '1']])}`;
  let pause = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      const body = await connect(send, path, signal);
      events.report('');
      pause = FIRST_PAUSE;
      repeats.startOver();
      await readLines(body, (texts) => events.receive(texts.filter((each) => repeats.isNew(each))), signal);
      if (!signal.aborted) events.report('the machine ended the connection');
    } catch (error) {
      if (signal.aborted) return;
      events.report(describeError(error));
    }
    await sleep(pause, signal);
    pause = Math.min(pause * 2, MAX_PAUSE);
  }
}

async function connect(send: Send, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const attempt = new AbortController();
  const timer = setTimeout(() => attempt.abort(new DOMException('no answer', 'TimeoutError')), CONNECT_TIMEOUT);
  try {
    const response = await send(path, { signal: AbortSignal.any([signal, attempt.signal]) });
    if (response.body === null) throw new Error('the machine sent no lines');
    return response.body;
  } finally {
    clearTimeout(timer);
  }
}

async function readLines(body: ReadableStream<Uint8Array>, receive: (texts: string[]) => void, signal: AbortSignal) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let pending: string[] = [];
  let size = 0;
  let frame: Promise<void> | null = null;

  const flush = () => {
    frame = null;
    const texts = pending;
    [pending, size] = [[], 0];
    if (!signal.aborted) receive(texts);
  };
  while (true) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + decoder.decode(value, { stream: true })).split('\n');
    rest = parts.pop()!;
    if (rest.length > MAX_LINE) rest = '';
    for (const each of parts) {
      if (!each) continue;
      pending.push(each);
      size += each.length;
    }
    if (pending.length > 0) frame ??= nextFrame().then(flush);
    if (size > MAX_PENDING) await frame;
  }
  await frame;
}

/** Resolves before the browser draws, or soon if the page is not shown. */
function nextFrame(): Promise<void> {
  return new Promise((resolve) => {
    if (document.hidden) setTimeout(resolve, 250);
    else requestAnimationFrame(() => resolve());
  });
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** Finds the lines that are sent once more after a new connection. */
export class RepeatFilter {
  #received: number[] = [];
  #expected = new Map<number, number>();

  constructor(readonly size = MAX_REPEATED) {}

  startOver(): void {
    this.#expected.clear();
    for (const each of this.#received) this.#expected.set(each, (this.#expected.get(each) ?? 0) + 1);
  }

  isNew(text: string): boolean {
    const key = hash(text);
    const left = this.#expected.get(key) ?? 0;
    if (left > 0) {
      this.#expected.set(key, left - 1);
      return false;
    }
    this.#received.push(key);
    if (this.#received.length > 2 * this.size) this.#received = this.#received.slice(-this.size);
    return true;
  }
}
