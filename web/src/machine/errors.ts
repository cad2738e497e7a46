import { shorten } from '../lib/text';

/** The sentence of an error, without the code that the transport puts before it. */
export function describeError(error: unknown): string {
  if (error instanceof Error) {
    const raw = (error as { rawMessage?: unknown }).rawMessage;
    const text = typeof raw === 'string' && raw ? raw : error.message;
    if (error.name === 'TimeoutError') return 'the machine did not answer in time';
    if (text === 'Failed to fetch') return 'the machine cannot be reached';
    return shorten(text || error.name);
  }
  return shorten(String(error));
}
