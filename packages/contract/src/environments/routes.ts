import { z } from 'zod';
import { maxEnvironments } from '../limits.ts';
import { teamEdits, teamReads, teamWrites } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  CreateEnvironmentRequest,
  Environment,
  EnvironmentSortField,
  ListEnvironmentsResponse,
} from './environments.ts';

const environment = z.object({ uid: z.string().meta({ description: 'Id of the environment: 22 of [A-Za-z0-9]' }) });
const madeByPerson = 'A person made it, and the key belongs to an agent';
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
        'All environments of the team, environments of which the caller is a guest, and environments that the caller opened by their link',
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
      'Runs that use it keep their configuration. Runs that wait for its setup become FAILED `resource_not_found`.',
    allow: teamEdits,
    params: environment,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { ...noEnvironment, 403: madeByPerson },
  },
} as const satisfies Record<string, Route>;
