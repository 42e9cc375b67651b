import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { type FactoryFileName, factoryFileSchemas } from './json-schemas.ts';

const schemas = factoryFileSchemas();
const ajv = new Ajv2020({ strict: false, unicodeRegExp: true });
const accepts = (name: FactoryFileName, text: string): boolean => ajv.validate(schemas[name], parse(text));

const factory = 'schemaVersion: v1alpha1\nname: a\nrepositories: []\nagentDefaults: ';

test.each<[FactoryFileName, string]>([
  ['factory', `${factory}{model: auto}`],
  ['factory', `${factory}{harness: {type: claude, model: opus}}\nalias: Demo 1`],
  ['agent', '{}'],
  ['agent', 'agentType: MAIN\nworkerHost: null\nharness: {type: codex, auth: {source: managedSecret, secretName: K}}'],
  ['automation', 'triggers: [{provider: github, event: push, filter: {branches: {not_in: [x]}, paths: [a]}}]'],
  [
    'automation',
    'triggers: [{provider: webhook, event: received, filter: {webhook_ids: [abcdefghij0123456789AB], payload: {a: [1]}}}]',
  ],
  [
    'automation',
    'triggers: [{provider: schedule, event: cron_fired, schedule: {cron: "@daily"}}, {provider: linear, event: x}]',
  ],
  ['webhook', 'secretName: S'],
  ['webhook', 'secretName: S\nauthMode: signature\nsignatureScheme: stripe'],
  ['webhook', 'secretName: S\nauthMode: signature\nsignatureScheme: hmac\nsignature: {header: X-Sig, prefix: v1=}'],
  [
    'webhook',
    'secretName: S\nauthMode: url_token\nsignatureScheme: sns\nduplicateWindowSeconds: 0\neventHeader: X-Event',
  ],
  ['runner', 'platform: {linux: {dockerImage: u}}'],
])('the JSON Schema of %s accepts %j, as the reader of definition files does', (name, text) => {
  expect(accepts(name, text)).toBe(true);
});

test.each<[FactoryFileName, string]>([
  ['factory', `${factory}{}`],
  ['factory', `${factory}{model: auto, harness: {type: claude, model: opus}}`],
  ['factory', `${factory}{model: auto}\nnme: x`],
  ['agent', 'model: a\nharness: {type: codex}'],
  ['agent', 'agentType: BOSS'],
  ['agent', 'harness: {type: codex, auth: {source: managedSecret}}'],
  ['agent', 'harness: {}'],
  ['automation', 'triggers: []'],
  ['automation', 'triggers: [{provider: github, event: issue_closed}]'],
  ['automation', 'triggers: [{provider: github, event: push, filter: {labels: [x]}}]'],
  ['automation', 'triggers: [{provider: webhook, event: received, filter: {webhook_ids: [stripe]}}]'],
  ['webhook', 'authMode: token'],
  ['webhook', 'secretName: S\nauthMode: signature'],
  ['webhook', 'secretName: S\nsignatureScheme: stripe'],
  ['webhook', 'secretName: S\nauthMode: signature\nsignatureScheme: hmac'],
  ['webhook', 'secretName: S\nauthMode: signature\nsignatureScheme: github\nsignature: {header: X-Sig}'],
  ['webhook', 'secretName: S\nauthMode: signature\nsignatureScheme: sns'],
  ['runner', 'description: x'],
])('the JSON Schema of %s refuses %j, as the reader of definition files does', (name, text) => {
  expect(accepts(name, text)).toBe(false);
});

test('every key of every definition file has a description, or refers to a schema that has a description', () => {
  const missing: string[] = [];
  /** Returns whether a reference leads to a schema that has a description, in the document to which the path belongs. */
  const isDescribed = (reference: unknown, path: string): boolean => {
    const [, file = ''] = path.split('/');
    const { $defs = {} } = schemas[file as FactoryFileName] as { $defs?: Record<string, { description?: string }> };
    return typeof reference === 'string' && !!$defs[reference.replace('#/$defs/', '')]?.description;
  };
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, member] of Object.entries(value)) {
      if (key === 'properties' && !/\/(?:if|then|else|not)$|\/allOf\/\d+\/anyOf\/\d+$/.test(path))
        for (const [name, property] of Object.entries(member as Record<string, Record<string, unknown>>))
          if (!property.description && !isDescribed(property.$ref, path) && property.const === undefined)
            missing.push(`${path}.${name}`);
      walk(member, `${path}/${key}`);
    }
  };
  walk(schemas, '');
  expect(missing).toEqual([]);
});

test('the schema documents use draft 2020-12 and have an id', () => {
  for (const [name, schema] of Object.entries(schemas))
    expect(schema).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: `${name}.schema.json`,
    });
});
