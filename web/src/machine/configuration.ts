/** The configuration file of the machine, for its owners. */

import type { Send } from './http';

export interface Configuration {
  readonly text: string;
  /** Identifies the text: saving fails if the file is another one meanwhile. */
  readonly checksum: string;
  readonly editable: boolean;
  /** Why it cannot be edited. */
  readonly reason: string;
  readonly revision: string;
}

const DRAFT_KEY = 'cogwork.draft';

export async function readConfiguration(send: Send): Promise<Configuration> {
  return (await (await send('/configuration.json')).json()) as Configuration;
}

/** An unsaved text, and the checksum of the one that it changes. */
export interface KeptDraft {
  readonly text: string;
  readonly checksum: string;
  /** The text that it changes; missing if there is no room for it. */
  readonly base?: string;
}

/** Keeps an unsaved text for the Configure view, also over a reload. */
export function keepDraft(draft: KeptDraft): void {
  try {
    sessionStorage.setItem(DRAFT_KEY, JSON.stringify(draft));
  } catch {
    // The browser limits what a page may keep. Without the base, a merge asks more.
    sessionStorage.setItem(DRAFT_KEY, JSON.stringify({ ...draft, base: undefined }));
  }
}

export function readDraft(): KeptDraft | null {
  const kept = sessionStorage.getItem(DRAFT_KEY);
  return kept === null ? null : (JSON.parse(kept) as KeptDraft);
}

/** Changes the unsaved text, or else the one of the machine, and keeps the result unsaved. */
export async function editDraft(send: Send, edit: (text: string) => Promise<string>): Promise<void> {
  const draft = readDraft() ?? startDraft(await readConfiguration(send));
  keepDraft({ ...draft, text: await edit(draft.text) });
}

function startDraft({ text, checksum }: Configuration): KeptDraft {
  return { text, checksum, base: text };
}

export function dropDraft(): void {
  sessionStorage.removeItem(DRAFT_KEY);
}

/** Replaces some attributes of a service in the text of a configuration, and keeps everything else as it is. */
export async function setAttributes(
  text: string,
  service: string,
  replaced: readonly string[],
  attributes: Readonly<Record<string, unknown>>,
): Promise<string> {
  // Imported when used: the first view needs no parser.
  const { readText, setValue } = await import('../lib/config_text');
  const config = readText(text) as { services?: ({ name?: string } | null)[] } | undefined;
  const index = config?.services?.findIndex((each) => each?.name === service) ?? -1;
  if (index < 0) throw new Error(`the configuration has no service ${service}`);
  const keys = new Set([...replaced, ...Object.keys(attributes)]);
  return [...keys].reduce((changed, key) => setValue(changed, ['services', index, 'attributes', key], attributes[key]), text);
}

export interface PlanStep {
  readonly resource: string;
  readonly action: string;
  readonly reason: string;
}

export interface SettingChange {
  readonly section: string;
  readonly change: string;
  readonly effect: string;
}

export interface ConfigDiagnostic {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly effect?: string;
  readonly hint?: string | null;
  readonly pointer: string;
  readonly line?: number;
  readonly column?: number;
}

/** What saving a text would do. */
export interface Preview {
  readonly refused: boolean;
  readonly diagnostics: readonly ConfigDiagnostic[];
  readonly plan: readonly PlanStep[];
  readonly settings: readonly SettingChange[];
}

export interface HistoryEntry {
  readonly id: number;
  readonly applied_at: number;
  readonly author: { readonly kind: string; readonly name: string; readonly restored: number | null };
  readonly revision: string;
  readonly summary: string;
  readonly size: number;
}

export async function previewConfiguration(send: Send, text: string, signal: AbortSignal): Promise<Preview> {
  const headers = { 'Content-Type': 'text/plain' };
  return (await (await send('/configuration/check', { method: 'POST', headers, body: text, signal })).json()) as Preview;
}

/** Returns the checksum of the saved text. `restored`: the number of the entry of the history that it is. */
export async function saveConfiguration(send: Send, text: string, checksum: string, restored: number | null): Promise<string> {
  const headers = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ text, checksum, ...(restored === null ? {} : { restore: restored }) });
  const reply = await send('/configuration/save', { method: 'POST', headers, body, signal: AbortSignal.timeout(30_000) });
  return ((await reply.json()) as { checksum: string }).checksum;
}

/** A device at the machine, as a component to configure. */
export interface Device {
  readonly name: string;
  readonly api: string;
  readonly model: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

export async function findDevices(send: Send): Promise<Device[]> {
  const signal = AbortSignal.timeout(20_000);
  return (await (await send('/configuration/devices.json', { signal })).json()) as Device[];
}

export async function readHistory(send: Send): Promise<HistoryEntry[]> {
  return (await (await send('/configuration/history.json')).json()) as HistoryEntry[];
}

export async function readHistoryText(send: Send, id: number): Promise<string> {
  return ((await (await send(`/configuration/history/${id}.json`)).json()) as { text: string }).text;
}
