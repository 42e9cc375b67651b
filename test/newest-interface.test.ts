/** Compares docs/decisions/newest-interface.md with the routes, the schemas and the tools. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isAvailableProvider } from '@runyard/contract/factories/files/triggers';
import { maxFactoryWebhooks, maxWebhookBytes, maxWebhookDeliveriesPerMinute } from '@runyard/contract/limits';
import { openApiDocument } from '@runyard/contract/openapi/openapi';
import { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { schemes } from '@runyard/contract/webhooks/signature-schemes/schemes';
import { errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import { isWithoutEffect } from '@runyard/contract/wire/without-effect';
import { ServiceMessage, WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { expect, test } from 'vitest';
import { factoryTools } from '../packages/service/src/edges/mcp/factory-tools.ts';

const page = readFileSync(path.resolve(import.meta.dirname, '../docs/decisions/newest-interface.md'), 'utf8');

/** Returns the rows of the table below a heading, as the part and its state. */
function rowsBelow(heading: string): [part: string, state: string][] {
  const section = page.split('\n## ').find((each) => each.startsWith(heading)) ?? '';
  const rows = [...section.matchAll(/^\| `?([^|`]+)`?[^|]* \| ([a-z ]+) \|/gm)].map(
    ([, part = '', state = '']): [string, string] => [part.trim(), state.trim()],
  );
  return rows.filter(([, state]) => state !== 'state');
}

test.each([
  ['Routes', 100],
  ['Members of `config`', 20],
  ['Keys and triggers', 15],
  ['Tools', 18],
  ['Members of objects', 50],
  ['Answers and workers', 12],
  ['Error codes', 4],
  ['Messages of workers', 10],
  ['Webhooks', 12],
  ['Integrations', 6],
])('each row below %s has a state', (heading, least) => {
  const rows = rowsBelow(heading);
  expect(rows.length).toBeGreaterThanOrEqual(least);
  for (const [part, state] of rows) expect(['works', 'refused', 'without effect'], part).toContain(state);
});

const { paths, components } = openApiDocument('http://127.0.0.1') as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, { readonly properties?: object }>> };
};

test('a route works if and only if the OpenAPI document has it', () => {
  const shape = (at: string) => at.replaceAll(/\{\w+\}/g, '{}').replace(/^\/api\/v1/, '');
  const known = new Set(
    Object.entries(paths).flatMap(([at, methods]) => Object.keys(methods).map((method) => `${method} ${shape(at)}`)),
  );
  for (const [part, state] of rowsBelow('Routes')) {
    const [method = '', at = ''] = part.split(' ');
    expect(known.has(`${method.toLowerCase()} ${shape(at)}`), part).toBe(state === 'works');
  }
});

test('a member of an object works if and only if its schema has it', () => {
  for (const [part, state] of rowsBelow('Members of objects')) {
    const [schema = '', member = ''] = part.split('.');
    const { properties } = components.schemas[schema] ?? {};
    expect(properties, schema).toBeDefined();
    expect(Object.hasOwn(properties ?? {}, member), part).toBe(state === 'works');
  }
});

test('a member of a configuration has the state that its schema gives it', () => {
  const shape: Readonly<Record<string, (typeof AmbientAgentConfig.shape)[keyof typeof AmbientAgentConfig.shape]>> =
    AmbientAgentConfig.shape;
  for (const [part, state] of rowsBelow('Members of `config`')) {
    const schema = shape[part];
    expect(schema === undefined || isWithoutEffect(schema), part).toBe(state === 'without effect');
  }
  const named = new Set(rowsBelow('Members of `config`').map(([part]) => part));
  const marked = Object.entries(shape).flatMap(([name, schema]) => (isWithoutEffect(schema) ? [name] : []));
  expect(marked.filter((name) => !named.has(name))).toEqual([]);
});

test('a provider of triggers works if and only if its triggers fire', () => {
  const providers = rowsBelow('Keys and triggers').filter(
    ([part]) => /^[a-z_]+$/.test(part) && part !== 'integrations',
  );
  expect(providers.length).toBeGreaterThan(8);
  for (const [provider, state] of providers) expect(isAvailableProvider(provider), provider).toBe(state === 'works');
});

test('a tool works if and only if the server has it, and no tool is missing', () => {
  const rows = rowsBelow('Tools');
  const tools = factoryTools.map(({ name }) => name);
  for (const [name, state] of rows) expect(tools.includes(name), name).toBe(state === 'works');
  expect(tools.filter((name) => !rows.some(([part]) => part === name))).toEqual([]);
});

test('an error code works if and only if the catalogue has it', () => {
  for (const [code, state] of rowsBelow('Error codes'))
    expect(Object.hasOwn(errorCatalogue, code), code).toBe(state === 'works');
});

test('a message of workers, or its member, works if and only if its schema has it', () => {
  const members = new Map(
    [...ServiceMessage.options, ...WorkerMessage.options].map(({ shape }) => [shape.type.value, shape.data.shape]),
  );
  for (const [part, state] of rowsBelow('Messages of workers')) {
    const [type = '', member] = part.split('.');
    const known = members.get(type as never);
    const has = known !== undefined && (member === undefined || Object.hasOwn(known, member));
    expect(has, part).toBe(state === 'works');
  }
});

test('the limits and the signature schemes of webhooks are as the page says', () => {
  for (const limit of [
    `at most ${maxWebhookBytes / 1024} KB`,
    `${maxWebhookDeliveriesPerMinute} a minute`,
    `${maxFactoryWebhooks} in a factory`,
  ])
    expect(page).toContain(`| works | ${limit}`);
  const named = rowsBelow('Webhooks').flatMap(([part, state]) => (part === 'scheme' ? [state] : []));
  expect(named.length).toBe(6);
  for (const [, scheme = ''] of page.matchAll(/^\| scheme `(\w+)` \| works \|/gm))
    expect(schemes).toHaveProperty(scheme);
});

test('the answers that the page describes are in the OpenAPI document', () => {
  const of = (at: string, method: string) => JSON.stringify(paths[at]?.[method]);
  expect(of('/agent/runs/{runId}/followups', 'post')).toContain('"422"');
  expect(of('/factory', 'get')).toContain('"schema":{"default":50,"type":"integer","minimum":1,"maximum":100}');
  expect(Object.keys(paths).filter((at) => at.includes('/integrations/'))).toEqual([]);
});
