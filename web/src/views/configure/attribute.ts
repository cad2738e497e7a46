import { typesOf, valuesOf, type Schema } from './json_schema';
import { shorten } from '../../lib/text';

/** How an attribute is edited. */
export type FieldKind = 'choice' | 'number' | 'text' | 'json';

export type Parsed = { readonly value: unknown; readonly problem: '' } | { readonly problem: string };

/** The field for an attribute. What does not fit its schema is edited as JSON, so that it can be seen. */
export function chooseField(schema: Schema, value: unknown): FieldKind {
  const kind = fieldOf(schema);
  const isSet = value !== undefined && value !== null;
  if (kind === 'number' && isSet && typeof value !== 'number' && typeof value !== 'string') return 'json';
  if (kind === 'text' && isSet && typeof value !== 'string') return 'json';
  return kind;
}

/** What an empty field shows: its default, or what its JSON looks like. */
export function describeEmpty(schema: Schema): string {
  if (schema.default !== undefined && schema.default !== null && schema.default !== '') {
    return `default: ${shorten(JSON.stringify(schema.default), 80)}`;
  }
  if (fieldOf(schema) !== 'json') return '';
  const types = partsOf(schema).flatMap(typesOf);
  return types.includes('array') ? 'JSON: [ … ]' : types.includes('object') ? 'JSON: { … }' : 'JSON';
}

/** Where an attribute stands in a form: what is required first, what has to be written as JSON last. */
export function rankField(schema: Schema, isRequired: boolean): number {
  return (isRequired ? 0 : 2) + (fieldOf(schema) === 'json' ? 1 : 0);
}

/** The values to choose from, and the one that is written if it is another one, such as a variable. */
export function listChoices(schema: Schema, value: unknown): unknown[] {
  const choices = valuesOf(partsOf(schema));
  return value === undefined || value === null || choices.includes(value) ? choices : [...choices, value];
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
  const types = partsOf(schema)
    .flatMap(typesOf)
    .filter((each) => each !== 'null');
  if (valuesOf(partsOf(schema)).length > 0) return 'choice';
  if (types.length > 0 && types.every((each) => each === 'number' || each === 'integer')) return 'number';
  return types.length > 0 && types.every((each) => each === 'string') ? 'text' : 'json';
}

function partsOf(schema: Schema): readonly Schema[] {
  return [schema, ...(schema.anyOf ?? [])];
}
