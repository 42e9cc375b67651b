import { maxEnvironments, maxKeys } from '@runyard/contract/limits';
import { z } from 'zod';
import { teamEdits, teamReads, teamWrites } from '../access.ts';
import {
  CreateEnvironmentRequest,
  Environment,
  EnvironmentSortField,
  ListEnvironmentsResponse,
} from '../environments.ts';
import { CreateKeyRequest, CreateKeyResponse, DeleteResponse, ListKeysResponse } from '../keys.ts';
import type { Route } from '../route.ts';

const environment = z.object({ uid: z.string().meta({ description: 'Id of the environment: 22 of [A-Za-z0-9]' }) });
const madeByPerson = 'A person made it, and the key is that of an agent';
const noEnvironment = { 404: 'No such environment, or it belongs to another team' };
const refused = {
  400: 'A wrong value, or one that sandboxes cannot keep',
  403: 'The content policy refuses a setup command',
};
const replay = { 409: 'The Idempotency-Key was used with another body' };

export const environmentRoutes = {
  listEnvironments: {
    method: 'GET',
    path: '/agent/environments',
    tag: 'environments',
    summary: 'List environments',
    allow: teamReads,
    query: z.object({
      sort_by: EnvironmentSortField.default('last_updated').meta({ description: 'last_updated: most recent first' }),
    }),
    answer: {
      status: 200,
      description:
        'All of the team, those that the caller is a guest of, and those that the caller opened by their link',
      schema: ListEnvironmentsResponse,
    },
  },
  createEnvironment: {
    method: 'POST',
    path: '/agent/environments',
    tag: 'environments',
    summary: 'Create an environment',
    allow: teamWrites,
    body: CreateEnvironmentRequest,
    once: 'createEnvironment',
    answer: { status: 201, description: 'Created', schema: Environment },
    errors: { ...refused, 409: `${replay[409]}, or the team has ${maxEnvironments} environments` },
  },
  getEnvironment: {
    method: 'GET',
    path: '/agent/environments/{uid}',
    tag: 'environments',
    summary: 'Read an environment',
    allow: teamReads,
    params: environment,
    answer: { status: 200, description: 'The environment', schema: Environment },
    errors: noEnvironment,
  },
  updateEnvironment: {
    method: 'PUT',
    path: '/agent/environments/{uid}',
    tag: 'environments',
    summary: 'Replace the configuration of an environment',
    allow: teamEdits,
    params: environment,
    body: CreateEnvironmentRequest,
    answer: { status: 200, description: 'The environment as it is now', schema: Environment },
    errors: { ...refused, ...noEnvironment },
  },
  deleteEnvironment: {
    method: 'DELETE',
    path: '/agent/environments/{uid}',
    tag: 'environments',
    summary: 'Delete an environment',
    description:
      'Runs that use it keep what they have. Those that wait for it to be set up become FAILED `resource_not_found`.',
    allow: teamEdits,
    params: environment,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { ...noEnvironment, 403: madeByPerson },
  },
  // Agent keys do not manage keys, because a program in a sandbox could create a key that outlives its run.
  listKeys: {
    method: 'GET',
    path: '/keys',
    tag: 'keys',
    summary: 'List API keys',
    description: 'Administrators see all keys of the team, others their own.',
    allow: { user: 'viewer' },
    answer: { status: 200, description: 'Keys, without their secret part', schema: ListKeysResponse },
  },
  createKey: {
    method: 'POST',
    path: '/keys',
    tag: 'keys',
    summary: 'Create an API key',
    description:
      'The raw key is in this answer only, and in repetitions with its Idempotency-Key. Administrators make agent keys; owners make those of an identity that acts for users. A personal key works in each team of its person: the header X-Team-Uid names another one than the team it was made in.',
    // A person whose key expires creates the next one, whatever the role.
    allow: { user: 'viewer', byBody: { member: 'kind', roles: { agent: 'admin' } } },
    body: CreateKeyRequest,
    once: 'createKey',
    answer: { status: 201, description: 'Created', schema: CreateKeyResponse },
    errors: {
      409: `${replay[409]}, or the team has ${maxKeys} keys`,
    },
  },
  deleteKey: {
    method: 'DELETE',
    path: '/keys/{uid}',
    tag: 'keys',
    summary: 'Delete an API key',
    description:
      "It stops working at once. Administrators delete the keys of others, but none of a person with a role above theirs. Whoever runs the service replaces the operator's key on its machine.",
    allow: { user: 'viewer' },
    params: z.object({ uid: z.string().meta({ description: 'UID of the key' }) }),
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: {
      403: "It is the operator's key of the service, or its person has a role above yours",
      404: 'No such key, or it is not yours to delete',
    },
  },
} as const satisfies Record<string, Route>;
