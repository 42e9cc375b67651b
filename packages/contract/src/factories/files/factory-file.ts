import { z } from 'zod';
import { RepositoryName } from '../../environments/repositories.ts';
import { maxFactoryRepositories } from '../../limits.ts';
import { NonBlank, Text } from '../../wire/primitives.ts';
import { checkExclusions, executionDefaults, McpServers, SecretNames } from './execution.ts';
import { CredentialStrategyOfFile, notAvailableKey } from './not-available.ts';
import { strictObject } from './strict-object.ts';

/** The only version of the format. */
export const schemaVersion = 'v1alpha1';

const Repositories = z
  .array(
    strictObject({
      owner: RepositoryName.describe('Owner on the code host'),
      name: RepositoryName.describe('Name of the repository'),
    }),
  )
  .max(maxFactoryRepositories)
  .superRefine((repositories, context) => {
    const seen = new Set<string>();
    for (const [index, { owner, name }] of repositories.entries()) {
      const full = `${owner}/${name}`.toLowerCase();
      if (seen.has(full)) context.addIssue({ code: 'custom', path: [index], message: `repeats ${owner}/${name}` });
      seen.add(full);
    }
  });

const AgentDefaults = strictObject(executionDefaults)
  .superRefine(checkExclusions)
  .superRefine((defaults, context) => {
    if (defaults.model === undefined && defaults.harness === undefined)
      context.addIssue({ code: 'custom', message: 'needs model or harness' });
  })
  .meta({ oneOf: [{ required: ['model'] }, { required: ['harness'] }] });

/** `factory.yaml`. */
export const FactoryFile = strictObject({
  schemaVersion: z.literal(schemaVersion).describe('Version of the format'),
  name: NonBlank.max(200).describe('Name of the factory'),
  description: Text.max(2_000).optional().describe('Purpose of the factory'),
  alias: z
    .string()
    .trim()
    .regex(/^[\p{L}\p{N} ._-]{1,60}$/u, {
      error: 'must be 1 to 60 letters, digits, spaces, dots, underscores and hyphens',
    })
    .optional()
    .describe('Short name by which people address the foreman: letters, digits, spaces, `.`, `_` and `-`, at most 60'),
  repositories: Repositories.describe('Repositories that the factory works in, each with owner and name'),
  secrets: SecretNames.optional().describe('Secrets that every agent gets in addition to its own'),
  mcpServers: McpServers.optional().describe(
    'MCP servers that every agent gets in addition to its own, by the names that agents see',
  ),
  agentDefaults: AgentDefaults.describe('How runs are executed, unless the agent or the automation sets another value'),
  credentialStrategy: CredentialStrategyOfFile,
  integrations: notAvailableKey('integrations'),
  cloudProviders: notAvailableKey('cloudProviders'),
  providers: notAvailableKey('providers'),
});
