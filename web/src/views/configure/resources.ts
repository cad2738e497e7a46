import type { JSONPath } from 'jsonc-parser';
import { appendValue, readText } from '../../lib/config_text';
import { shorten } from '../../lib/text';
import { expand, type Schema } from './json_schema';

export { setValue } from '../../lib/config_text';

const SECTIONS = ['components', 'services'] as const;
const BUILTIN_NAMESPACE = 'rdk';
/** What a service has if it is not written. */
const SERVICE_DEFAULT = 'builtin';
const API_KEYS = ['namespace', 'type', 'subtype'];
const MODEL_KEYS = ['namespace', 'model_family', 'name'];

type Section = (typeof SECTIONS)[number];
type Entry = Readonly<Record<string, unknown>>;

/** A resource in the text of a configuration. */
export interface ConfiguredResource {
  readonly path: JSONPath;
  readonly name: string;
  /** As the machine reads it: `rdk:component:camera`. */
  readonly api: string;
  readonly model: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** A model that a resource can have. */
export interface KnownModel {
  readonly section: Section;
  readonly api: string;
  readonly model: string;
  /** What it is for, in a sentence. */
  readonly description: string;
}

/** The resources of a configuration, in their order. */
export function listResources(document: unknown): ConfiguredResource[] {
  return SECTIONS.flatMap((section) =>
    entriesOf(document, section).flatMap((entry, index) => {
      if (!isObject(entry)) return [];
      const { name, attributes } = entry;
      return [
        {
          path: [section, index],
          name: typeof name === 'string' ? name : name === undefined || name === null ? nameIn(section) : '',
          api: apiOf(entry, section),
          model: modelOf(entry, section),
          attributes: isObject(attributes) ? attributes : {},
        },
      ];
    }),
  );
}

/** The document with the API and the model of every resource as the schema names them. */
export function resolveNames(document: unknown): unknown {
  if (!isObject(document)) return document;
  const resolved = SECTIONS.map((section) => [
    section,
    entriesOf(document, section).map((entry) =>
      isObject(entry) ? { ...entry, api: apiOf(entry, section), model: modelOf(entry, section) } : entry,
    ),
  ]);
  return { ...document, ...(Object.fromEntries(resolved) as Entry) };
}

/** Older files have `type` and perhaps `namespace`, or an API in three parts. */
function apiOf({ api, type, namespace }: Entry, section: Section): string {
  const written = joinParts(api, API_KEYS);
  if (written !== undefined) return written;
  if (typeof type !== 'string') return '';
  const kind = section === 'components' ? 'component' : 'service';
  return `${typeof namespace === 'string' ? namespace : BUILTIN_NAMESPACE}:${kind}:${type}`;
}

function modelOf({ model }: Entry, section: Section): string {
  return joinParts(model, MODEL_KEYS) ?? nameIn(section);
}

/** A name as text, or from the parts of an object; undefined if nothing is written. */
function joinParts(written: unknown, keys: readonly string[]): string | undefined {
  if (written === undefined || written === null) return undefined;
  if (typeof written === 'string') return written;
  if (!isObject(written)) return '';
  const parts = keys.map((key) => written[key]);
  return parts.every((each) => typeof each === 'string') ? parts.join(':') : '';
}

function nameIn(section: Section): string {
  return section === 'services' ? SERVICE_DEFAULT : '';
}

function entriesOf(document: unknown, section: Section): readonly unknown[] {
  const entries = isObject(document) ? document[section] : undefined;
  return Array.isArray(entries) ? entries : [];
}

function isObject(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The last part of the API, such as `camera`. */
export function subtypeOf({ api }: ConfiguredResource): string {
  return shorten(api.split(':').at(-1)?.replaceAll('_', ' ') ?? '', 30);
}

/** The steps of a JSON pointer. */
export function parsePointer(pointer: string): JSONPath {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step));
}

/** A place of the document as a JSON pointer, as diagnostics name it. */
export function makePointer(path: JSONPath): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Adds a resource with a name that no other has. */
export function addResource(
  text: string,
  { section, api, model }: Pick<KnownModel, 'section' | 'api' | 'model'>,
  wantedName: string,
  attributes: Readonly<Record<string, unknown>> = {},
): string {
  const name = makeUnique(wantedName, listResources(readText(text)));
  return appendValue(text, [section], { name, api, model, attributes });
}

function makeUnique(wanted: string, resources: readonly ConfiguredResource[]): string {
  const names = new Set(resources.map((each) => each.name));
  let name = wanted;
  for (let number = 2; names.has(name); number += 1) name = `${wanted}${number}`;
  return name;
}

/** The built-in models, from the conditions of the schema. */
export function listModels(root: Schema): KnownModel[] {
  return SECTIONS.flatMap((section) => {
    const items = root.properties?.[section]?.items;
    if (items === undefined) return [];
    const conditions = expand(root, items, undefined)[0]?.allOf ?? [];
    return conditions.flatMap((each) => {
      const api = each.if?.properties?.api?.const;
      const condition = each.if?.properties?.model;
      const names = (condition?.enum ?? [condition?.const]).filter((name) => typeof name === 'string');
      // The short name of a built-in model, such as `webcam` for `rdk:builtin:webcam`.
      const model = names.toSorted((a, b) => a.length - b.length)[0];
      if (typeof api !== 'string' || model === undefined) return [];
      const attributes = each.then?.properties?.attributes ?? {};
      const described = expand(root, attributes, undefined).find((part) => part.description !== undefined);
      return [{ section, api, model, description: described?.description ?? '' }];
    });
  });
}
