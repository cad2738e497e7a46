import { Action } from '../../lib/action.svelte';
import { HttpError, type Send } from '../../machine/http';
import {
  dropDraft,
  keepDraft,
  previewConfiguration,
  readConfiguration,
  saveConfiguration,
  readDraft,
  type Configuration,
  type Preview,
} from '../../machine/configuration';

const CHECK_DELAY = 300;
const CHECK_TIMEOUT = 20_000;

/** A text that somebody edits, with what the machine says about it. Survives a reload of the page. */
export class Draft {
  saved = $state.raw<Configuration | null>(null);
  text = $state('');
  /** What the machine said last. While `isChecked` is false, that was about an earlier text. */
  preview = $state.raw<Preview | null>(null);
  /** Counts how often the whole text was replaced. */
  generation = $state(0);
  /** What somebody else made of the file meanwhile. */
  theirs = $state.raw<Configuration | null>(null);
  /** The text that this one was made from; null if it is not known. */
  base = $state.raw<string | null>(null);
  readonly action = new Action();
  readonly checking = new Action();
  #checked = $state<string | null>(null);
  isChecked = $derived(this.#checked === this.text);
  isChanged = $derived(this.saved !== null && this.text !== this.saved.text);

  #send: Send;
  /** The entry of the history that the text was taken from. */
  #restored: number | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #check: AbortController | undefined;

  constructor(send: Send) {
    this.#send = send;
  }

  async load(): Promise<void> {
    await this.action.run(async () => {
      const saved = await readConfiguration(this.#send);
      const kept = readDraft();
      const isStale = kept !== null && kept.checksum !== saved.checksum;
      this.base = isStale ? (kept.base ?? null) : saved.text;
      // With the checksum that the draft is based on, so that saving it over another change is refused.
      this.saved = isStale ? { ...saved, text: this.base ?? saved.text, checksum: kept.checksum } : saved;
      this.theirs = isStale ? saved : null;
      this.text = kept?.text ?? saved.text;
      this.generation += 1;
      this.#checkSoon(0);
    });
  }

  edit(text: string, restored: number | null = null): void {
    if (text === this.text) return;
    this.text = text;
    this.#restored = restored;
    this.#keep();
    this.#checkSoon(CHECK_DELAY);
  }

  /** Looks whether the file is another one meanwhile, and shows it if nothing was edited. */
  async compare(): Promise<void> {
    if (this.saved === null || this.action.busy) return;
    const current = await readConfiguration(this.#send).catch(() => null);
    if (current === null || this.action.busy || current.checksum === this.saved.checksum) return;
    if (this.isChanged) this.theirs = current;
    else {
      [this.saved, this.base, this.text] = [current, current.text, current.text];
      this.generation += 1;
      this.#checkSoon(0);
    }
  }

  /** Continues with a text that has the change of the file, too. */
  merge(text: string): void {
    if (this.theirs === null) return;
    [this.saved, this.base, this.theirs] = [this.theirs, this.theirs.text, null];
    this.action.error = '';
    this.text = text;
    this.#restored = null;
    this.generation += 1;
    this.#keep();
    this.#checkSoon(0);
  }

  /** Replaces the text by the text of an entry of the history. */
  restore(text: string, id: number): void {
    this.edit(text, id);
    this.generation += 1;
  }

  discard(): void {
    dropDraft();
    if (this.saved) this.edit(this.saved.text);
    this.generation += 1;
  }

  checkAgain(): void {
    this.#checkSoon(0);
  }

  /** Returns whether it is saved. */
  async save(): Promise<boolean> {
    const { saved, text } = this;
    if (saved === null) return false;
    const checksum = await this.action.run(async () => {
      try {
        return await saveConfiguration(this.#send, text, saved.checksum, this.#restored);
      } catch (error) {
        if (!(error instanceof HttpError) || error.status !== 409) throw error;
        const current = await readConfiguration(this.#send);
        if (current.checksum === saved.checksum) throw error;
        this.theirs = current;
        return undefined;
      }
    });
    if (checksum === undefined) return false;
    this.saved = { ...saved, text, checksum };
    this.base = text;
    if (this.text === text) this.#restored = null;
    this.#keep();
    this.#checkSoon(0);
    return true;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#check?.abort();
  }

  #keep(): void {
    if (this.saved === null || !this.isChanged) dropDraft();
    else keepDraft({ text: this.text, checksum: this.saved.checksum, base: this.base ?? undefined });
  }

  #checkSoon(delay: number): void {
    this.close();
    this.#timer = setTimeout(() => void this.#checkNow(), delay);
  }

  async #checkNow(): Promise<void> {
    const check = (this.#check = new AbortController());
    const signal = AbortSignal.any([check.signal, AbortSignal.timeout(CHECK_TIMEOUT)]);
    const text = this.text;
    const preview = await this.checking.run(() => previewConfiguration(this.#send, text, signal));
    if (check.signal.aborted) this.checking.error = '';
    else if (preview !== undefined) [this.preview, this.#checked] = [preview, text];
  }
}
