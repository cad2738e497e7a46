import { describeError } from '../machine/errors';

const LATE_COMMAND_DEADLINE = 1000;

type Act = () => Promise<unknown>;

/**
 * The commands that this page gives to something that moves.
 *
 * The newest command replaces the ones before it, so their failures are not shown: the machine
 * interrupts them.
 */
export class Motion {
  busy = $state(false);
  error = $state('');
  /** Whether steps are repeated: another step may follow although nothing moves at the moment. */
  isRepeating = $state(false);

  #halt: Act;
  #newest = 0;
  #running = new Set<Promise<unknown>>();
  #wanted: Act | null = null;

  constructor(halt: Act) {
    this.#halt = halt;
  }

  /** Returns whether the command was done, and not replaced. */
  async command(act: Act): Promise<boolean> {
    return this.#give(act, this.#replace());
  }

  /** Gives the newest of many commands, one at a time, as a slider needs it. */
  follow(act: Act): void {
    const isFollowing = this.#wanted !== null;
    this.#wanted = act;
    if (!isFollowing) void this.#followWanted();
  }

  /** Repeats a small step until another command comes, or the step returns false. */
  async repeat(step: () => Promise<boolean>): Promise<void> {
    const mine = this.#replace();
    let goesOn = true;
    this.isRepeating = true;
    while (goesOn && mine === this.#newest) {
      const done = await this.#give(async () => (goesOn = await step()), mine);
      goesOn &&= done;
    }
    if (mine === this.#newest) this.isRepeating = false;
  }

  /**
   * Stops. A command that is still on its way may arrive after the stop, on another connection:
   * what was not answered yet is stopped once more.
   */
  async stop(): Promise<void> {
    const mine = this.#replace();
    const late = [...this.#running];
    await this.#give(this.#halt, mine);
    if (late.length === 0) return;
    await Promise.race([Promise.allSettled(late), new Promise((wake) => setTimeout(wake, LATE_COMMAND_DEADLINE))]);
    if (mine === this.#newest) await this.#give(this.#halt, mine);
  }

  /** Makes room for a new command, and returns its number. */
  #replace(): number {
    this.#wanted = null;
    this.isRepeating = false;
    return ++this.#newest;
  }

  async #followWanted(): Promise<void> {
    this.isRepeating = false;
    const mine = ++this.#newest;
    for (let act = this.#wanted; act !== null && mine === this.#newest;) {
      await this.#give(act, mine);
      if (mine !== this.#newest) return;
      act = this.#wanted === act ? null : this.#wanted;
    }
    if (mine === this.#newest) this.#wanted = null;
  }

  async #give(act: Act, number: number): Promise<boolean> {
    const call = (async () => act())();
    this.#running.add(call);
    this.busy = true;
    try {
      await call;
      if (number === this.#newest) this.error = '';
      return number === this.#newest;
    } catch (error) {
      if (number === this.#newest) this.error = describeError(error);
      return false;
    } finally {
      this.#running.delete(call);
      this.busy = this.#running.size > 0;
    }
  }
}
