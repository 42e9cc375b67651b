/** Shows JSON schemas as tables for people. */
import { type Html, html, prose } from './html.ts';

/** The members of JSON Schema that the contract uses. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly deprecated?: boolean;
}

/** Writes ` | ` between the parts. */
const alternatives = (parts: readonly Html[]): Html[] =>
  parts.flatMap((part, index) => (index === 0 ? [part] : [html` | `, part]));

/** Named schemas of the document. */
export type NamedSchemas = Readonly<Record<string, JsonSchema>>;

const nameOf = (reference: string): string => reference.split('/').at(-1) ?? '';

/** If a member has no description and refers to a named schema, adds the description of that schema. */
export function describeReference(member: JsonSchema, schemas: NamedSchemas): JsonSchema {
  const description = member.description ?? (member.$ref && schemas[nameOf(member.$ref)]?.description);
  return description ? { ...member, description } : member;
}

/** Adds the descriptions of named schemas to all members of an object. */
export function describeMembers(schema: JsonSchema, schemas: NamedSchemas): JsonSchema {
  if (!schema.properties) return schema;
  const members = Object.entries(schema.properties).map(([name, member]) => [name, describeReference(member, schemas)]);
  return { ...schema, properties: Object.fromEntries(members) };
}

/** Returns the type in a few words, with links to named schemas. */
export function typeOf(schema: JsonSchema): Html {
  if (schema.$ref) {
    const name = nameOf(schema.$ref);
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  const variants = schema.oneOf ?? schema.anyOf;
  if (variants) return html`${alternatives(variants.map(typeOf))}`;
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum) return html`${alternatives(schema.enum.map((value) => html`<code>${String(value)}</code>`))}`;
  if (schema.type === 'array') return html`array of ${schema.items ? typeOf(schema.items) : html`anything`}`;
  if (schema.type === 'object' && typeof schema.additionalProperties === 'object' && !schema.properties) {
    return html`map of ${typeOf(schema.additionalProperties)}`;
  }
  const type = schema.type === undefined ? 'any' : [schema.type].flat().join(' | ');
  return html`${schema.format ? `${type} (${schema.format})` : type}`;
}

function limitsOf(schema: JsonSchema): string[] {
  const { minimum, maximum, maxLength, maxItems } = schema;
  return [
    schema.default === undefined ? '' : `default ${JSON.stringify(schema.default)}`,
    minimum !== undefined && maximum !== undefined ? `${minimum} to ${maximum}` : '',
    maxLength === undefined ? '' : `at most ${maxLength} characters`,
    maxItems === undefined ? '' : `at most ${maxItems} items`,
    schema.deprecated ? 'deprecated' : '',
  ].filter(Boolean);
}

/** Returns a row: name, type, description. */
export function memberRow(name: string, schema: JsonSchema, isRequired: boolean, note = ''): Html {
  const notes = [schema.description ?? '', note, ...limitsOf(schema)].filter(Boolean).join(' · ');
  const nested = schema.properties ?? schema.items?.properties;
  return html`<tr><td><code>${name}</code>${isRequired ? html` <span class="required">required</span>` : ''}</td><td>${typeOf(schema)}</td><td>${prose(notes)}${
    nested ? membersTable(schema.properties ? schema : (schema.items ?? {})) : ''
  }</td></tr>`;
}

/** Returns the members of an object. */
function membersTable(schema: JsonSchema): Html {
  const rows = Object.entries(schema.properties ?? {}).map(([name, member]) =>
    memberRow(name, member, schema.required?.includes(name) ?? false),
  );
  return html`<div class="scroll"><table><tbody>${rows}</tbody></table></div>`;
}

/** Returns a named schema: its members, its variants or its values. */
export function schemaView(schema: JsonSchema): Html {
  const variants = schema.oneOf ?? schema.anyOf;
  const description = schema.description ? html`<p>${prose(schema.description)}</p>` : '';
  if (variants) {
    const views = variants.map((variant) =>
      variant.properties ? membersTable(variant) : html`<p>${typeOf(variant)}</p>`,
    );
    return html`${description}<p>One of:</p>${views}`;
  }
  if (schema.properties) return html`${description}${membersTable(schema)}`;
  return html`${description}<p>${typeOf(schema)}</p>`;
}
