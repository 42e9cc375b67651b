import { z } from 'zod';
import { maxSecrets } from '../limits.ts';
import { teamReads } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import { describesMachine } from '../wire/variable-names.ts';
import { ListSecretsResponse, PutSecretRequest, Secret, SecretName, SecretScope } from './secrets.ts';

const named = z.object({ name: SecretName.describe('Name of the secret') });

const newlyNamed = z.object({
  name: SecretName.refine((name) => !describesMachine(name), {
    error: 'must not begin with WARP_METADATA_, because workers set variables with such names',
  }).describe('Name of the secret'),
});

// Agent keys cannot set or delete secrets, because a program in a sandbox may have such a key and could then give itself more secrets.
export const secretRoutes = {
  listSecrets: {
    method: 'GET',
    path: '/secrets',
    tag: 'secrets',
    summary: 'List secrets',
    description:
      "The secrets of the team and the caller's personal secrets, without their values. Agent keys see only secrets that their runs may use.",
    allow: teamReads,
    answer: { status: 200, description: 'By name', schema: ListSecretsResponse },
  },
  putSecret: {
    method: 'PUT',
    path: '/secrets/{name}',
    tag: 'secrets',
    summary: 'Set a secret',
    description:
      'Creates the secret, or replaces its value. Runs that have the earlier value keep it. Secrets of the team are set by administrators.',
    allow: { user: 'member', byBody: { member: 'scope', roles: { team: 'admin' } } },
    params: newlyNamed,
    body: PutSecretRequest,
    answer: { status: 200, description: 'The secret, without its value', schema: Secret },
    errors: {
      400: 'A wrong value, or a value that is too short to be found in text',
      409: `The team, or the person, has ${maxSecrets} secrets`,
    },
  },
  deleteSecret: {
    method: 'DELETE',
    path: '/secrets/{name}',
    tag: 'secrets',
    summary: 'Delete a secret',
    description:
      'Runs that have the value keep it. Runs that still need it when they begin become FAILED `resource_not_found`. Secrets of the team are deleted by administrators.',
    allow: { user: 'member' },
    params: named,
    query: z.object({
      scope: SecretScope.optional().describe('Selects one of two secrets with this name; absent: the only secret'),
    }),
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { 404: 'No such secret' },
  },
} as const satisfies Record<string, Route>;
