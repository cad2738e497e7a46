import { shorten } from '../../lib/text';
import { typesOf, valuesOf, type Schema } from './json_schema';

/** How an attribute is edited. */
export type FieldKind = 'resource' | 'choice' | 'number' | 'text' | 'list' | 'object' | 'map' | 'json';

export type Parsed = { readonly value: unknown; readonly problem: '' } | { readonly problem: string };

/** Rows beyond which a list or an object is edited as JSON. */
const MAX_ROWS = 100;

/** The field for an attribute. What does not fit its schema is edited as JSON, so that it can be seen. */
export function chooseField(schema: Schema, value: unknown): FieldKind {
  const kind = fieldOf(schema);
  if (value === undefined || value === null) return kind;
  if (kind === 'number') return typeof value === 'number' || typeof value === 'string' ? kind : 'json';
  if (kind === 'text' || kind === 'resource') return typeof value === 'string' ? kind : 'json';
  if (kind === 'list') return Array.isArray(value) && value.length <= MAX_ROWS ? kind : 'json';
  if (kind === 'object' || kind === 'map') return isObject(value) && Object.keys(value).length <= MAX_ROWS ? kind : 'json';
  return kind;
}

/** What an empty field shows: its default, or what its JSON looks like. */
export function describeEmpty(schema: Schema): string {
  if (schema.default !== undefined && schema.default !== null && schema.default !== '') {
    return `default: ${shorten(JSON.stringify(schema.default), 80)}`;
  }
  if (fieldOf(schema) !== 'json') return '';
  const types = typesOf(schema);
  return types.includes('array') ? 'JSON: [ … ]' : types.includes('object') ? 'JSON: { … }' : 'JSON';
}

/** Where an attribute stands in a form: what is required first, what has parts or is JSON last. */
export function rankField(schema: Schema, isRequired: boolean): number {
  const isSimple = ['resource', 'choice', 'number', 'text'].includes(fieldOf(schema));
  return (isRequired ? 0 : 2) + (isSimple ? 0 : 1);
}

/** The values to choose from, and the one that is written if it is another one, such as a variable. */
export function listChoices(schema: Schema, value: unknown): unknown[] {
  return withWritten(valuesOf([schema]), value);
}

/** The values, and the one that is written. */
export function withWritten<T>(choices: readonly T[], value: T | null | undefined): T[] {
  return value === undefined || value === null || choices.includes(value) ? [...choices] : [...choices, value];
}

/** What a new item of a list is. */
export function makeItem(schema: Schema): unknown {
  const kind = fieldOf(schema);
  if (kind === 'text' || kind === 'resource') return '';
  if (kind === 'choice') return valuesOf([schema])[0];
  return { number: 0, list: [], object: {}, map: {}, json: null }[kind];
}

/** What somebody typed into a field; undefined if it is to be removed. */
export function parseField(kind: FieldKind, text: string): Parsed {
  if (text.trim() === '') return { value: undefined, problem: '' };
  if (kind === 'text') return { value: text, problem: '' };
  if (kind === 'number') return parseNumber(text.trim());
  try {
    return { value: JSON.parse(text), problem: '' };
  } catch {
    return { problem: 'this is not JSON; text needs quotes: "text"' };
  }
}

/** The value of an attribute as its field shows it. */
export function showField(kind: FieldKind, value: unknown): string {
  if (value === undefined || value === null) return '';
  if (kind === 'json' || kind === 'choice') return JSON.stringify(value);
  return String(value);
}

function parseNumber(text: string): Parsed {
  if (text.startsWith('$')) return { value: text, problem: '' };
  const number = Number(text);
  return Number.isFinite(number) ? { value: number, problem: '' } : { problem: 'this is not a number' };
}

function fieldOf(schema: Schema): FieldKind {
  const types = typesOf(schema).filter((each) => each !== 'null');
  if (valuesOf([schema]).length > 0) return 'choice';
  if (types.length === 0) return 'json';
  if (types.every((each) => each === 'number' || each === 'integer')) return 'number';
  if (types.every((each) => each === 'string')) return schema['x-depends-on'] === undefined ? 'text' : 'resource';
  if (types.every((each) => each === 'array') && schema.items !== undefined) return 'list';
  if (!types.every((each) => each === 'object')) return 'json';
  if (schema.properties !== undefined) return 'object';
  return typeof schema.additionalProperties === 'object' ? 'map' : 'json';
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
