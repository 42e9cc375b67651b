/** Writes the files of a definition. */

import { schemaVersion } from '@runyard/contract/factories/files/factory-file';
import { compare } from '@runyard/contract/factories/files/faults';
import { pathOf } from '@runyard/contract/factories/files/layout';
import { isScalar, type Pair, stringify } from 'yaml';
import type { FactoryDefinition } from '../src/definition.ts';

/** A file that `exportDefinition` writes. */
export interface ExportedFile {
  readonly path: string;
  readonly content: string;
}

/** Returns the files that define a factory, by path. `readDefinition` reads the same definition from these files. */
export function exportDefinition(definition: FactoryDefinition): ExportedFile[] {
  const { factory, agents, automations, webhooks, runners, environments, skills } = definition;
  const files = [
    { path: 'factory.yaml', content: yaml({ schemaVersion, ...factory }) },
    ...agents.map(({ name, prompt, agentType, description, ...rest }) => {
      const type = agentType === 'CUSTOM' ? {} : { agentType };
      const matter = { ...(description === undefined ? {} : { description }), ...type, ...rest };
      return { path: pathOf.agent(name), content: markdown(matter, prompt) };
    }),
    ...automations.map(({ name, prompt, enabled, ...rest }) => {
      const matter = { ...(enabled ? {} : { enabled }), ...rest };
      return { path: pathOf.automation(name), content: markdown(matter, prompt) };
    }),
    ...webhooks.map(({ name, enabled, ...rest }) => ({
      path: pathOf.webhook(name),
      content: yaml({ ...rest, ...(enabled ? {} : { enabled }) }),
    })),
    ...runners.map(({ name, ...rest }) => ({ path: pathOf.runner(name), content: yaml(rest) })),
    ...environments.map(({ name, config }) => ({ path: pathOf.environment(name), content: yaml(config) })),
    ...skills.map(({ path, text }) => ({ path, content: text })),
  ];
  return files.toSorted((a, b) => compare(a.path, b.path));
}

/**
 * Keys that come first, in this order. All other keys follow in alphabetical order, so that equal definitions have equal texts.
 */
const keyOrder = [
  'schemaVersion',
  'name',
  'provider',
  'event',
  'description',
  'alias',
  'agentType',
  'enabled',
  'agent',
  'authMode',
  'signatureScheme',
  'owner',
  'repositories',
  'triggers',
  'type',
  'model',
  'harness',
  'os',
];
const rank = new Map(keyOrder.map((key, index) => [key, index]));
const keyOf = ({ key }: Pair): string => (isScalar(key) ? String(key.value) : String(key));

function compareKeys(one: Pair, other: Pair): number {
  const [a, b] = [keyOf(one), keyOf(other)];
  return (rank.get(a) ?? keyOrder.length) - (rank.get(b) ?? keyOrder.length) || compare(a, b);
}

function yaml(value: object): string {
  if (Object.keys(value).length === 0) return '';
  return stringify(value, {
    aliasDuplicateObjects: false,
    lineWidth: 0,
    schema: 'core',
    sortMapEntries: compareKeys,
    version: '1.2',
  });
}

const markdown = (matter: object, body: string): string =>
  `---\n${yaml(matter)}---\n${body === '' ? '' : `\n${body}\n`}`;
