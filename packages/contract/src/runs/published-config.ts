/** Members of a run's configuration that the public service defines, and that this service has only in part, or not at all. */
import { z } from 'zod';
import { Text } from '../wire/primitives.ts';
import { withoutEffect } from '../wire/without-effect.ts';

/** Providers of models that a run names itself. */
export const InferenceProviders = z
  .looseObject({
    aws: z
      .looseObject({
        disabled: z.boolean().nullable().optional().describe('True: the provider is not used'),
        role_arn: Text.nullable().optional().describe('Role of the account'),
        region: Text.nullable().optional().describe('Region of the models'),
      })
      .meta({ id: 'AwsInferenceProvider', description: 'Models of Amazon Bedrock with the role `role_arn`' })
      .nullable()
      .optional()
      .describe('Models of Amazon Bedrock'),
  })
  .meta({
    id: 'InferenceProviders',
    description:
      'Providers of models with the rights of a role. 400 unless each is disabled or empty: runs of this service use its own models, and another provider would change their model and their costs',
  });

/** Secrets with which the program of a harness signs in. */
export const HarnessAuthSecrets = z
  .looseObject({
    claude_auth_secret_name: Text.nullable().optional().describe('Secret of Claude Code'),
    codex_auth_secret_name: Text.nullable().optional().describe('Secret of Codex'),
  })
  .meta({
    id: 'HarnessAuthSecrets',
    description:
      "Secrets with which the programs of harnesses sign in. 400 if the harness of the run would use one: harnesses use their models through this service, with the service's credentials. A secret of another harness has no effect",
  });

export const publishedMembers = {
  computer_use_enabled: withoutEffect(
    z
      .boolean()
      .optional()
      .describe('Whether the agent may use a graphical desktop; kept and returned, without effect on this service'),
  ),
  computer_use_model_id: withoutEffect(
    Text.nullable()
      .optional()
      .describe('Model for a graphical desktop; kept and returned, without effect on this service'),
  ),
  memory_stores: withoutEffect(
    z
      .array(z.unknown())
      .max(100)
      .nullable()
      .optional()
      .describe('Memory stores of the agent; kept and returned, without effect on this service'),
  ),
  credential_strategy: z
    .enum(['CREATOR', 'EXECUTOR', ''])
    .meta({
      id: 'RunCredentialStrategy',
      description:
        'Whose credentials the run uses. EXECUTOR: those of its executor, as without this member. CREATOR is accepted only if the creator of the run is its executor, and is 400 otherwise. Null or empty: not set',
    })
    .nullable()
    .optional()
    .describe('Whose credentials the run uses; null or empty: not set'),
  runner_id: Text.max(200)
    .nullable()
    .optional()
    .describe(
      'Where the run is executed: the UID of an environment, or the name of a pool of self-hosted workers, as a short form of `environment_id` or `worker_host`. Anything else is 400. Null or empty: not set',
    ),
  inference_providers: InferenceProviders.nullable()
    .optional()
    .describe('Refused unless empty or disabled: runs use the models of this service'),
  harness_auth_secrets: HarnessAuthSecrets.nullable()
    .optional()
    .describe('Refused if the harness of the run would use one: harnesses use their models through this service'),
};
