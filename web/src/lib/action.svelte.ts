import { describeError } from '../machine/errors';

/** What somebody asked the machine to do: whether it is still being done, and why it failed. */
export class Action {
  busy = $state(false);
  error = $state('');

  #running = 0;

  /** Returns the result, or undefined if it failed; the reason is then in `error`. */
  async run<T>(act: () => Promise<T>): Promise<T | undefined> {
    this.#running += 1;
    this.busy = true;
    try {
      const result = await act();
      this.error = '';
      return result;
    } catch (error) {
      this.error = describeError(error);
      return undefined;
    } finally {
      this.#running -= 1;
      this.busy = this.#running > 0;
    }
  }
}
