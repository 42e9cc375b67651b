/** Checks requests and answers against GitHub's own OpenAPI description (`openapi.json`, written by `cut-openapi.ts`). */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly answers: Readonly<Record<string, object>>;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
}

const { operations, components } = JSON.parse(readFileSync(path.join(import.meta.dirname, 'openapi.json'), 'utf8')) as {
  readonly operations: readonly Operation[];
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};

const ajv = new Ajv({ strict: false, allErrors: true, code: { optimize: false } });
// The package is CommonJS: its function is the default export of the module object.
(addFormats as unknown as { default: (to: Ajv) => void }).default(ajv);
ajv.addFormat('int64', true);
ajv.addFormat('repo.nwo', true);

/** GitHub's schemas are those of OpenAPI 3.0: `nullable` also allows null where `$ref`, `oneOf` or `anyOf` name the type. */
function forNull(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(forNull);
  if (typeof schema !== 'object' || schema === null) return schema;
  const {
    nullable,
    discriminator: _,
    ...members
  } = Object.fromEntries(Object.entries(schema).map(([name, each]) => [name, forNull(each)]));
  return nullable === true ? { anyOf: [{ type: 'null' }, members] } : members;
}

ajv.addSchema({ $id: 'github', components: forNull(components) });

const inGithub = (schema: object): object =>
  JSON.parse(JSON.stringify(forNull(schema)).replaceAll('"#/components', '"github#/components'));

/** The compiled schemas. A compilation takes more time than a check. */
const compiled = new WeakMap<object, ValidateFunction>();

/** Returns why a value does not have the form of a schema; null if it has. */
function faultOf(schema: object, value: unknown): string | null {
  const check = compiled.get(schema) ?? ajv.compile(inGithub(schema));
  compiled.set(schema, check);
  return check(value) ? null : ajv.errorsText(check.errors).slice(0, 2_000);
}

const operationOf = (method: string, pathname: string): Operation | undefined =>
  operations.find(
    (each) =>
      each.method === method.toLowerCase() &&
      new RegExp(`^${each.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(pathname),
  );

/** Returns why GitHub would not accept the body of a request; null if it would, or if GitHub has no schema for it. */
export function faultOfRequest(method: string, pathname: string, body: unknown): string | null {
  const schema = operationOf(method, pathname)?.body;
  return schema === undefined ? null : faultOf(schema, body);
}

/** Returns why GitHub would not send this answer; null if it would. */
export function faultOfAnswer(method: string, pathname: string, status: number, body: unknown): string | null {
  const operation = operationOf(method, pathname);
  if (operation === undefined) return `GitHub has no ${method} ${pathname}`;
  const schema = operation.answers[String(status)];
  // GitHub documents no answer for most refusals.
  if (schema === undefined) return status >= 400 ? null : `GitHub does not answer ${status} to ${method} ${pathname}`;
  return faultOf(schema, body);
}

/** Returns the smallest value of a schema. */
function sample(schema: Schema): unknown {
  if (schema.$ref !== undefined) return sample(components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {});
  if (schema.nullable) return null;
  if (schema.enum) return schema.enum[0];
  const [first] = schema.oneOf ?? schema.anyOf ?? [];
  if (first) return sample(first);
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map(sample));
  const { properties = {}, required = [] } = schema;
  switch (schema.type) {
    case 'string':
      return (
        { 'date-time': '2026-01-02T03:04:05Z', uri: 'https://github.example/', 'uri-template': 'https://x/' }[
          schema.format ?? ''
        ] ?? 'a'
      );
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return false;
    case 'array':
      return [];
    default:
      return Object.fromEntries(required.map((name) => [name, sample(properties[name] ?? {})]));
  }
}

/** Returns an object of GitHub with these members, and the smallest values for all others that its schema requires. */
export const sampleOf = (name: string, members: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  ...(sample({ $ref: name }) as Record<string, unknown>),
  ...members,
});
