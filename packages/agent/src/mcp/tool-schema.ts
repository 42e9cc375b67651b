type Schema = Readonly<Record<string, unknown>>;

/** The input schema of a tool in the form that model providers accept, and a sentence about rules that this form cannot express. */
export interface ProviderSchema {
  /** JSON schema of an object, without alternatives or conditions at its top level. */
  readonly schema: Schema;
  /** Sentence for the tool's description; absent if `schema` expresses all rules. */
  readonly note?: string;
}

/**
 * Keywords that OpenAI or Anthropic refuse at the top level of a tool's schema. Both refuse the whole request then, and not only the tool.
 * Sources: developers.openai.com/api/docs/guides/function-calling, the errors in github.com/makenotion/notion-mcp-server/issues/340
 * and github.com/anthropics/claude-code/issues/95504.
 */
const notAtTop = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'then', 'else', 'enum', 'const', '$ref'];

export const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const objectsIn = (value: unknown): readonly Schema[] => (Array.isArray(value) ? value.filter(isObject) : []);

const namesIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((name) => typeof name === 'string') : [];

/** Returns the definition to which a `$ref` such as `#/$defs/Query` points; undefined if there is none in the schema. */
function definitionOf(ref: unknown, root: Schema): Schema | undefined {
  const [start, ...keys] = typeof ref === 'string' ? ref.split('/') : [];
  if (start !== '#') return undefined;
  let found: unknown = root;
  for (const key of keys) {
    const name = key.replaceAll('~1', '/').replaceAll('~0', '~');
    found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return isObject(found) ? found : undefined;
}

/** The members of the branches of a schema, merged into one object. */
interface Merged {
  readonly properties: Record<string, unknown>;
  readonly required: Set<string>;
  readonly notes: string[];
  /** Number of branches that may still be merged. It bounds the work for definitions that refer to each other. */
  branchesLeft: number;
}

const maxBranches = 256;

/** Adds the members of a branch to `into`. If the branch is one of several alternatives, its members stay optional. */
function merge(branch: Schema, root: Schema, into: Merged, isOptional: boolean): void {
  into.branchesLeft -= 1;
  if (into.branchesLeft < 0) return;
  const { properties, required, $ref, allOf, anyOf, oneOf } = branch;
  if (isObject(properties)) {
    for (const [name, schema] of Object.entries(properties))
      if (!Object.hasOwn(into.properties, name)) into.properties[name] = schema;
  }
  if (!isOptional) for (const name of namesIn(required)) into.required.add(name);
  const definition = definitionOf($ref, root);
  if (definition !== undefined) merge(definition, root, into, isOptional);
  for (const part of objectsIn(allOf)) merge(part, root, into, isOptional);
  for (const [words, alternatives] of [
    ['at least one', objectsIn(anyOf)],
    ['exactly one', objectsIn(oneOf)],
  ] as const) {
    const needed = alternatives.map((each) => namesIn((definitionOf(each.$ref, root) ?? each).required).join(', '));
    if (!isOptional && needed.some((names) => names !== ''))
      into.notes.push(`Give ${words} of these sets of members: ${needed.map((names) => `(${names})`).join(' or ')}.`);
    for (const each of alternatives) merge(each, root, into, true);
  }
  if (!isOptional && (branch.not !== undefined || branch.if !== undefined))
    into.notes.push('The server checks further conditions between the members.');
  // The members that a condition names can be given in some calls only.
  for (const part of [branch.then, branch.else]) if (isObject(part)) merge(part, root, into, true);
}

/** Returns the schema with `items` in each array, because OpenAI and Google refuse a request with an array that has none. */
function withItems(value: unknown, depth = 0): unknown {
  if (depth > 64) return {};
  if (Array.isArray(value)) return value.map((each) => withItems(each, depth + 1));
  if (!isObject(value)) return value;
  const parts = Object.entries(value).map(([name, part]) => [name, withItems(part, depth + 1)] as const);
  const copy = Object.fromEntries(parts) as Record<string, unknown>;
  if (value.type === 'array' && value.items === undefined && value.prefixItems === undefined) copy.items = {};
  return copy;
}

/** Returns whether the schema, or a part of it, is an array without items. */
function hasArrayWithoutItems(value: unknown, depth = 0): boolean {
  if (depth > 64 || typeof value !== 'object' || value === null) return false;
  const { type, items, prefixItems } = value as Schema;
  if (type === 'array' && items === undefined && prefixItems === undefined) return true;
  return Object.values(value).some((part) => hasArrayWithoutItems(part, depth + 1));
}

/** Returns whether strict clients or model providers refuse a tool with this input schema. */
export const hasOddSchema = (schema: unknown): boolean =>
  !isObject(schema) ||
  schema.type !== 'object' ||
  notAtTop.some((keyword) => schema[keyword] !== undefined) ||
  hasArrayWithoutItems(schema);

/**
 * Returns a tool's input schema in the form that all model providers accept. Alternatives at the top level become optional members of one
 * object, because the server itself checks the input of each call.
 */
export function providerSchema(inputSchema: unknown): ProviderSchema {
  const given = isObject(inputSchema) ? inputSchema : {};
  const merged: Merged = {
    // Without a prototype, a member with the name __proto__ is a member like the others.
    properties: Object.create(null) as Record<string, unknown>,
    required: new Set(),
    notes: [],
    branchesLeft: maxBranches,
  };
  merge(given, given, merged, false);
  const kept = Object.fromEntries(Object.entries(given).filter(([name]) => !notAtTop.includes(name)));
  const required = [...merged.required].filter((name) => Object.hasOwn(merged.properties, name));
  const schema = withItems({
    ...kept,
    type: 'object',
    properties: merged.properties,
    ...(required.length > 0 ? { required } : {}),
  }) as Record<string, unknown>;
  // `required` of the server may name members that no branch declares, which OpenAI refuses.
  if (required.length === 0) delete schema.required;
  return { schema, ...(merged.notes.length > 0 ? { note: [...new Set(merged.notes)].join(' ') } : {}) };
}
