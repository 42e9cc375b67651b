/** Writes the files of a definition. */
import { stringify } from 'yaml';
import type { FactoryDefinition } from './definition.ts';
import { compare } from './faults.ts';
import { pathOf } from './layout.ts';
import { schemaVersion } from './schemas/factory-file.ts';

/** A file of an exported definition. */
export interface ExportedFile {
  readonly path: string;
  readonly content: string;
}

/** Returns the files that define a factory, by path. `readDefinition` of them gives the same definition. */
export function exportDefinition(definition: FactoryDefinition): ExportedFile[] {
  const { factory, agents, automations, webhooks, runners, skills } = definition;
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
    ...skills.map(({ path, text }) => ({ path, content: text })),
  ];
  return files.toSorted((a, b) => compare(a.path, b.path));
}

function yaml(value: object): string {
  if (Object.keys(value).length === 0) return '';
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0, version: '1.2', schema: 'core' });
}

const markdown = (matter: object, body: string): string =>
  `---\n${yaml(matter)}---\n${body === '' ? '' : `\n${body}\n`}`;
