/** JSON Schema (draft 2020-12) of the definition files, for editors. It is generated from the schemas that check the files. */
import { z } from 'zod';
import { AgentFile } from './agent-file.ts';
import { AutomationFile } from './automation-file.ts';
import { EnvironmentFile } from './environment-file.ts';
import { FactoryFile } from './factory-file.ts';
import { RunnerFile } from './runner-file.ts';
import { VariablesFile } from './variables-file.ts';
import { WebhookFile } from './webhook-file.ts';

const files = {
  factory: { schema: FactoryFile, title: 'factory.yaml' },
  agent: { schema: AgentFile, title: 'Front matter of agents/<name>/agent.md' },
  automation: { schema: AutomationFile, title: 'Front matter of automations/<name>/automation.md' },
  webhook: { schema: WebhookFile, title: 'webhooks/<name>.yaml' },
  runner: { schema: RunnerFile, title: 'runners/<name>.yaml' },
  environment: { schema: EnvironmentFile, title: 'environments/<name>.yaml' },
  variables: { schema: VariablesFile, title: 'variables.yaml' },
} as const;

/** The version of the format. */
export const schemaVersion = 'v1alpha1';

/** Name of a kind of definition file. */
export type FactoryFileName = keyof typeof files;

/** Returns the JSON Schema of each kind of definition file. The keys are the names of the kinds. */
export function factoryFileSchemas(): Record<FactoryFileName, Record<string, unknown>> {
  const entries = Object.entries(files).map(([name, { schema, title }]) => {
    const { $schema, ...rest } = z.toJSONSchema(schema, { target: 'draft-2020-12', io: 'input' });
    return [name, { $schema, $id: `${name}.schema.json`, title, ...rest }];
  });
  return Object.fromEntries(entries);
}
