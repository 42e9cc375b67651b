/** Checks the parts of the OpenAPI document that readers and generators of clients need: names, descriptions and examples. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { openApiDocument } from './openapi.ts';

interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}
type Content = Readonly<Record<string, { readonly schema?: Schema; readonly example?: unknown }>>;
interface Operation {
  readonly operationId: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly description?: string;
    readonly schema: Schema;
    readonly example?: unknown;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
  readonly 'x-codeSamples'?: readonly { readonly source: string }[];
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const document = openApiDocument('http://127.0.0.1:4180') as unknown as Document;
const { schemas } = document.components;
const operations = [...Object.values(document.paths), ...Object.values(document.webhooks)].flatMap((methods) =>
  Object.values(methods),
);
const called = Object.values(document.paths).flatMap((methods) => Object.values(methods));

const nameOf = (schema: Schema): string => schema.$ref?.split('/').at(-1) ?? '';
/** Returns true if a schema has a description. For a reference without a description, looks at the schema that it refers to. */
const isDescribed = (schema: Schema): boolean => Boolean(schema.description ?? schemas[nameOf(schema)]?.description);

const bodiesOf = (operation: Operation) => [
  ...Object.entries(operation.requestBody?.content ?? {}).map(
    ([type, content]) => [`${operation.operationId} request`, type, content] as const,
  ),
  ...Object.entries(operation.responses).flatMap(([status, { content }]) =>
    Object.entries(content ?? {}).map(([type, each]) => [`${operation.operationId} ${status}`, type, each] as const),
  ),
];

/**
 * Returns each inline schema of the document, with its place. Skips `allOf`, because it contains conditions on members of the schema
 * itself.
 */
function* inlineSchemas(): Generator<readonly [string, Schema]> {
  function* below(at: string, schema: Schema): Generator<readonly [string, Schema]> {
    for (const [name, member] of Object.entries(schema.properties ?? {})) yield* own(`${at}.${name}`, member);
    if (schema.items) yield* own(`${at}[]`, schema.items);
    if (typeof schema.additionalProperties === 'object') yield* own(`${at}{}`, schema.additionalProperties);
    for (const each of [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])]) yield* own(`${at}|`, each);
  }
  function* own(at: string, schema: Schema): Generator<readonly [string, Schema]> {
    yield [at, schema];
    yield* below(at, schema);
  }
  for (const [name, schema] of Object.entries(schemas)) yield* below(name, schema);
  for (const operation of operations) {
    for (const { name, schema } of operation.parameters) yield* own(`${operation.operationId}?${name}`, schema);
    for (const [at, , { schema }] of bodiesOf(operation)) if (schema) yield* own(at, schema);
  }
}

describe('schemas', () => {
  test('of objects and enumerations are all named components, so that a generated client has one type for each', () => {
    const unnamed = [...inlineSchemas()].filter(
      ([, { properties, enum: values }]) => properties ?? (values?.[1] && values),
    );
    expect(unnamed.map(([at]) => at)).toEqual([]);
  });

  test('all have a description', () => {
    const without = Object.entries(schemas).filter(([, { description }]) => !description);
    expect(without.map(([name]) => name)).toEqual([]);
  });

  test('have a description of each member', () => {
    const without = Object.entries(schemas).flatMap(([name, { properties }]) =>
      Object.entries(properties ?? {})
        .filter(([, member]) => !isDescribed(member))
        .map(([member]) => `${name}.${member}`),
    );
    expect(without).toEqual([]);
  });

  test('have conditions only on members that have a description', () => {
    const membersIn = (schema: Schema): string[] => [
      ...Object.keys(schema.properties ?? {}),
      ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])].flatMap(membersIn),
    ];
    for (const [name, { allOf, properties }] of Object.entries(schemas))
      for (const member of (allOf ?? []).flatMap(membersIn))
        expect(Object.keys(properties ?? {}), name).toContain(member);
  });
});

describe('operations', () => {
  test('have a description of each parameter', () => {
    const without = operations.flatMap(({ operationId, parameters }) =>
      parameters
        .filter(({ description, schema }) => !description && !isDescribed(schema))
        .map(({ name }) => `${operationId}?${name}`),
    );
    expect(without).toEqual([]);
  });

  test('have an example as a command, and an example of each required parameter', () => {
    const without = called.flatMap(({ operationId, parameters, 'x-codeSamples': samples }) => [
      ...(samples?.[0]?.source.startsWith('curl ') ? [] : [operationId]),
      ...parameters
        .filter(({ required, example }) => required && (example === undefined || example === ''))
        .map(({ name }) => `${operationId}?${name}`),
    ]);
    expect(without).toEqual([]);
  });

  test('have an example of each body of a request and of an answer', () => {
    const without = operations.flatMap(bodiesOf).filter(([at, type, { example }]) => {
      const isPart = at.endsWith(' 206');
      return type !== 'application/problem+json' && !isPart && example === undefined;
    });
    expect(without.map(([at]) => at)).toEqual([]);
  });
});

describe('examples', () => {
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema({ $id: 'document', ...document });
  const problemsOf = (schema: Schema, example: unknown): string => {
    const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"document#'));
    return ajv.validate(absolute, example) ? '' : ajv.errorsText();
  };
  const bodies = operations.flatMap(bodiesOf).filter(([, type, { example }]) => type === 'application/json' && example);

  test.each(bodies)('of %s match the schema', (_, __, { schema, example }) => {
    expect(schema && problemsOf(schema, example)).toBe('');
  });

  test('that do not match the schema of a body are found by the check in this file', () => {
    expect(problemsOf({ $ref: '#/components/schemas/RunAgentRequest' }, { prompt: 7 })).not.toBe('');
    expect(problemsOf({ $ref: '#/components/schemas/RunAgentRequest' }, { title: 'No prompt' })).not.toBe('');
  });

  test('of parameters match the schemas of the parameters', () => {
    const wrong = operations.flatMap(({ operationId, parameters }) =>
      parameters
        .filter(({ schema, example }) => example !== undefined && problemsOf(schema, example))
        .map(({ name, schema, example }) => `${operationId}?${name}: ${problemsOf(schema, example)}`),
    );
    expect(wrong).toEqual([]);
  });

  test('begin with a request to create a run that needs no language model', () => {
    const [first] = called;
    expect(first?.operationId).toBe('createRun');
    expect(first?.requestBody?.content['application/json']?.example).toMatchObject({ config: { model_id: 'runbook' } });
  });
});
