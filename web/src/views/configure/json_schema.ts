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
  /** The API of the resource that the text names; `*` for any. */
  readonly 'x-depends-on'?: string;
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
      // The attributes of a model say more than the attributes of every model.
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

/**
 * A schema without references and alternatives: of the parts that fit the value, all that they allow.
 * What tells alternatives apart, such as the type of a step, keeps all its values.
 */
export function flatten(root: Schema, schema: Schema, value: unknown): Schema {
  const all = expand(root, schema, undefined);
  const parts = all.filter((each) => fits(each, value));
  const used = parts.length > 0 ? parts : all;
  const values = valuesOf(used);
  const properties = mergeProperties(used);
  for (const [name, property] of mergeProperties(all)) {
    if (properties.has(name) && isDiscriminator(all, name)) properties.set(name, property);
  }
  return {
    ...Object.assign({}, ...used.toReversed()),
    ...schema,
    $ref: undefined,
    anyOf: undefined,
    oneOf: undefined,
    const: undefined,
    type: [...new Set(used.flatMap(typesOf))].filter((each) => each !== 'null'),
    enum: values.length > 0 ? values : undefined,
    properties: properties.size > 0 ? Object.fromEntries(properties) : undefined,
    required: [...new Set(used.flatMap((each) => each.required ?? []))],
    additionalProperties: used.map((each) => each.additionalProperties).find((each) => typeof each === 'object'),
  };
}

/** Whether the alternatives have different constants there. */
export function isDiscriminator(parts: readonly Schema[], name: string): boolean {
  return parts.filter((each) => each.properties?.[name]?.const !== undefined).length > 1;
}

function mergeProperties(parts: readonly Schema[]): Map<string, Schema> {
  const found = new Map<string, Schema>();
  for (const [name, property] of parts.flatMap((each) => Object.entries(each.properties ?? {}))) {
    const earlier = found.get(name);
    found.set(name, earlier === undefined ? property : { description: earlier.description, anyOf: [earlier, property] });
  }
  return found;
}

/** Whether a value has no other constant than an alternative. */
function fits(schema: Schema, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(schema.properties ?? {}).every(([key, { const: wanted }]) => {
    const found = (value as Record<string, unknown>)[key];
    return wanted === undefined || found === undefined || found === wanted;
  });
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
