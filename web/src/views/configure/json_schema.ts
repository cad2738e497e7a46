/** Reads a JSON Schema for completion and forms: which keys and values may stand at a place of a document. */

export interface Schema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly if?: Schema;
  readonly then?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
}

export type Path = readonly (string | number)[];

const MAX_DEPTH = 12;

/** The schemas that apply to the value at the path of a document. */
export function schemasAt(root: Schema, document: unknown, path: Path): Schema[] {
  let schemas = expand(root, root, document);
  let value = document;
  for (const step of path) {
    value = childOf(value, step);
    schemas = schemas.flatMap((each) => stepInto(each, step)).flatMap((each) => expand(root, each, value));
  }
  return schemas;
}

/** Every property of some schemas with what is said about it, in their order. */
export function propertiesOf(root: Schema, schemas: readonly Schema[]): Map<string, Schema> {
  const found = new Map<string, Schema>();
  for (const schema of schemas) {
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const parts = expand(root, property, undefined);
      const described = { ...Object.assign({}, ...parts), ...property } as Schema;
      const earlier = found.get(name);
      // The attributes of a model say more than those of every model.
      if (earlier === undefined || (!described.description && earlier.description)) found.set(name, described);
      else found.set(name, { ...earlier, ...described });
    }
  }
  return found;
}

/** The values that are named: constants, enumerations and booleans. */
export function valuesOf(schemas: readonly Schema[]): unknown[] {
  const values = schemas.flatMap((each) => [
    ...(each.const === undefined ? [] : [each.const]),
    ...(each.enum ?? []),
    ...(typesOf(each).includes('boolean') ? [true, false] : []),
  ]);
  return [...new Set(values)].filter((each) => each !== null);
}

export function typesOf(schema: Schema): readonly string[] {
  if (schema.type === undefined) return [];
  return typeof schema.type === 'string' ? [schema.type] : schema.type;
}

/** Follows references, and takes the parts of a schema that apply to the value. */
export function expand(root: Schema, schema: Schema, value: unknown, depth = 0): Schema[] {
  if (depth > MAX_DEPTH) return [];
  if (schema.$ref !== undefined) {
    const target = root.$defs?.[schema.$ref.replace('#/$defs/', '')];
    return target === undefined ? [] : expand(root, target, value, depth + 1);
  }
  const parts = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])].flatMap((part) => {
    if (part.if === undefined) return [part];
    return part.then !== undefined && holds(part.if, value) ? [part.then] : [];
  });
  return [schema, ...parts.flatMap((part) => expand(root, part, value, depth + 1))];
}

/** Whether a condition holds. Only what our schema uses: constants, enumerations and required keys. */
function holds(condition: Schema, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const object = value as Record<string, unknown>;
  if (condition.required?.some((key) => !(key in object))) return false;
  return Object.entries(condition.properties ?? {}).every(([key, wanted]) => {
    if (!(key in object)) return true;
    if (wanted.const !== undefined) return object[key] === wanted.const;
    return wanted.enum === undefined || wanted.enum.includes(object[key]);
  });
}

function stepInto(schema: Schema, step: string | number): Schema[] {
  if (typeof step === 'number') return schema.items === undefined ? [] : [schema.items];
  const property = schema.properties?.[step];
  if (property !== undefined) return [property];
  return typeof schema.additionalProperties === 'object' ? [schema.additionalProperties] : [];
}

function childOf(value: unknown, step: string | number): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string | number, unknown>)[step] : undefined;
}
