import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { getLocation } from 'jsonc-parser';
import { readText } from '../../lib/config_text';
import { propertiesOf, schemasAt, typesOf, valuesOf, type Schema } from './json_schema';
import { resolveNames } from './resources';

/** Completes keys and values from the schema. */
export function completeFrom(root: Schema): (context: CompletionContext) => CompletionResult | null {
  return (context) => {
    const text = context.state.doc.toString();
    const word = context.matchBefore(/"?[\w:.-]*/);
    if (word === null || (word.from === word.to && !context.explicit)) return null;
    const location = getLocation(text, context.pos);
    const document = readText(text);
    const resolved = resolveNames(document);
    const parent = schemasAt(root, resolved, location.path.slice(0, -1));
    const options = location.isAtPropertyKey
      ? completeKeys(root, parent, document, location.path.slice(0, -1))
      : completeValues(schemasAt(root, resolved, location.path));
    if (options.length === 0) return null;
    return { from: word.from, to: endOfWord(text, context.pos), options, validFor: /^"?[\w:.-]*"?$/ };
  };
}

function completeKeys(root: Schema, schemas: readonly Schema[], document: unknown, path: readonly (string | number)[]): Completion[] {
  const object = path.reduce<unknown>(
    (value, step) => (typeof value === 'object' && value !== null ? (value as Record<string | number, unknown>)[step] : undefined),
    document,
  );
  const used = typeof object === 'object' && object !== null ? Object.keys(object) : [];
  return [...propertiesOf(root, schemas)]
    .filter(([name, schema]) => !used.includes(name) && !schema.deprecated)
    .map(([name, schema]) => ({
      label: JSON.stringify(name),
      apply: `${JSON.stringify(name)}: `,
      type: 'property',
      detail: typesOf(schema)
        .filter((each) => each !== 'null')
        .join(' | '),
      info: schema.description,
    }));
}

function completeValues(schemas: readonly Schema[]): Completion[] {
  return valuesOf(schemas).map((each) => ({ label: JSON.stringify(each), type: 'constant' }));
}

/** Where the word under the cursor ends, with its closing quote. */
function endOfWord(text: string, position: number): number {
  const rest = /^[\w:.-]*"?/.exec(text.slice(position));
  return position + (rest?.[0].length ?? 0);
}
