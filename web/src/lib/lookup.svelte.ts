import { backOff } from './back_off';
import { Poll } from './poll.svelte';

const FIRST_RETRY = 1000;
const LAST_RETRY = 15_000;
/** What hardly ever changes is asked for again now and then, in case it did. */
const REFRESH = 60_000;

/**
 * A value that hardly ever changes, such as properties: asked for until there is an answer, and again
 * when state that `ask` reads changes.
 *
 * Call it while a component is initialized.
 */
export function lookUp<T>(ask: () => Promise<T>): Poll<T> {
  let failures = 0;
  const found: Poll<T> = new Poll(
    async () => ask(),
    () => {
      failures = found.error ? failures + 1 : 0;
      return failures > 0 ? backOff(failures, FIRST_RETRY, LAST_RETRY) : REFRESH;
    },
  );
  return found;
}
