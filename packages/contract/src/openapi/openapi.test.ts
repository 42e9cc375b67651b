import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { routes } from '../routes.ts';
import type { Route } from '../wire/route.ts';
import { openApiDocument } from './openapi.ts';

const openApi = openApiDocument('http://localhost:4180');

test('the OpenAPI document is valid OpenAPI 3.1', async () => {
  const result = await new Validator().validate(openApi);
  expect(result.errors ?? []).toEqual([]);
  expect(result.valid).toBe(true);
});

test('the OpenAPI document resolves every reference to a schema', () => {
  const document = openApi as { components: { schemas: Record<string, unknown> } };
  const references = JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g);
  for (const [, reference = ''] of references) {
    expect(reference).toMatch(/^#\/components\/schemas\//);
    expect(document.components.schemas, reference).toHaveProperty(reference.split('/').at(-1) ?? '');
  }
});

test('the OpenAPI document describes every path parameter of a route and no others', () => {
  for (const [name, route] of Object.entries(routes) as [string, Route][]) {
    const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, key]) => key);
    expect(inPath, name).toEqual(Object.keys(route.params?.shape ?? {}));
  }
});

test('the OpenAPI document contains the constraints of requests', () => {
  const { components, paths } = openApi as {
    components: { schemas: Record<string, { properties: Record<string, unknown> }> };
    paths: Record<string, Record<string, { parameters: { name: string; schema: unknown }[]; responses: object }>>;
  };
  expect(components.schemas.CreateKeyRequest?.properties.name).toMatchObject({
    minLength: 1,
    maxLength: 200,
    pattern: '\\S',
  });
  expect(components.schemas.RequestedAgentConfig).toMatchObject({ not: { required: ['skill_spec', 'skills'] } });
  expect(components.schemas.AmbientAgentConfig).not.toHaveProperty('not');
  const operation = paths['/event-subscriptions/{subscriptionId}/test']?.post;
  expect(operation?.responses).toHaveProperty('400');
  expect(operation?.parameters.find(({ name }) => name === 'Idempotency-Key')?.schema).toMatchObject({
    pattern: '^[\\x21-\\x7e]{1,255}$',
  });
  for (const operations of Object.values(paths))
    for (const { responses } of Object.values(operations)) expect(responses).toHaveProperty('431');
});
