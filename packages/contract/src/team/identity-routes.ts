import { z } from 'zod';
import { maxIdentities } from '../limits.ts';
import { administrators, teamReads } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  AgentIdentity,
  CreateAgentIdentityRequest,
  ListAgentIdentitiesQuery,
  ListAgentIdentitiesResponse,
  UpdateAgentIdentityRequest,
} from './identities.ts';

const identity = z.object({ identityUid: z.string().meta({ description: 'UID of the identity' }) });
const noIdentity = { 404: 'No such agent identity, or it belongs to another team' };
const unusable = 'A wrong value, or a default that the team cannot use';
const ownersOnly =
  'The environment does not exist or belongs to another team, or a caller who is not an owner turns on on_behalf_of_enabled';

// Agent keys can read identities but cannot change them. Otherwise an agent could give itself secrets or the right to act for a person.
export const agentIdentityRoutes = {
  listAgentIdentities: {
    method: 'GET',
    path: '/agent/identities',
    tag: 'agent_identities',
    summary: 'List agent identities',
    description: 'With `factory_uid`, returns the agents in the definition of a factory, in the same form.',
    allow: teamReads,
    query: ListAgentIdentitiesQuery,
    answer: { status: 200, description: 'All of the team, or of the factory', schema: ListAgentIdentitiesResponse },
  },
  createAgentIdentity: {
    method: 'POST',
    path: '/agent/identities',
    tag: 'agent_identities',
    summary: 'Create an agent identity',
    allow: administrators,
    body: CreateAgentIdentityRequest,
    once: 'createAgentIdentity',
    answer: { status: 201, description: 'Created', schema: AgentIdentity },
    errors: {
      400: unusable,
      403: ownersOnly,
      409: `The team has ${maxIdentities} identities, or the Idempotency-Key was used with another body`,
    },
  },
  getAgentIdentity: {
    method: 'GET',
    path: '/agent/identities/{identityUid}',
    tag: 'agent_identities',
    summary: 'Read an agent identity',
    allow: teamReads,
    params: identity,
    answer: { status: 200, description: 'The identity', schema: AgentIdentity },
    errors: noIdentity,
  },
  updateAgentIdentity: {
    method: 'PUT',
    path: '/agent/identities/{identityUid}',
    tag: 'agent_identities',
    summary: 'Change an agent identity',
    description: 'Runs that exist stay as they are. The agents of a factory are changed with its definition.',
    allow: administrators,
    params: identity,
    body: UpdateAgentIdentityRequest,
    answer: { status: 200, description: 'The identity as it is now', schema: AgentIdentity },
    errors: { ...noIdentity, 400: unusable, 403: ownersOnly },
  },
  deleteAgentIdentity: {
    method: 'DELETE',
    path: '/agent/identities/{identityUid}',
    tag: 'agent_identities',
    summary: 'Delete an agent identity',
    description: 'Its agent keys stop working at once. Its runs are kept, and live runs continue.',
    allow: administrators,
    params: identity,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: noIdentity,
  },
} as const satisfies Record<string, Route>;
