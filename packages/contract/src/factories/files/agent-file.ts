import { z } from 'zod';
import { Text } from '../../wire/primitives.ts';
import { checkExclusions, executionOverrides } from './execution.ts';
import { CredentialStrategyOfFile } from './not-available.ts';
import { strictObject } from './strict-object.ts';

/** Roles of agents. Every factory has one foreman; MAIN is a synonym. */
const agentTypes = ['CUSTOM', 'FOREMAN', 'MAIN', 'TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'VERIFY'] as const;

/** Front matter of `agents/<name>/agent.md`. */
export const AgentFile = strictObject({
  description: Text.max(2_000).optional().describe('Task of the agent'),
  agentType: z
    .enum(agentTypes)
    .optional()
    .describe(
      'Role of the agent, default CUSTOM. Exactly one agent is the FOREMAN (synonym: MAIN): it gets work without an agent name',
    ),
  credentialStrategy: CredentialStrategyOfFile,
  ...executionOverrides,
})
  .superRefine(checkExclusions)
  .meta({ not: { required: ['model', 'harness'] } });
