import { z } from 'zod';
import { maxKeys } from '../limits.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import { CreateKeyRequest, CreateKeyResponse, ListKeysResponse } from './keys.ts';

export const keyRoutes = {
  // Agent keys cannot manage keys. Otherwise a program in a sandbox could create a key that is valid after its run.
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
      'The raw key is in this answer only, and in repetitions with its Idempotency-Key. Administrators make agent keys; owners make the keys of an identity that acts for users; the operator makes worker keys. A personal key works in each team of its person: use the header X-Team-Uid to choose another team than the one in which it was created.',
    // Every role may create a key, because a person whose key expires needs a new one.
    allow: { user: 'viewer', session: 'recent', byBody: { member: 'kind', roles: { agent: 'admin' } } },
    body: CreateKeyRequest,
    once: 'createKey',
    answer: { status: 201, description: 'Created', schema: CreateKeyResponse },
    errors: {
      409: `The Idempotency-Key was used with another body, or the team has ${maxKeys} keys`,
    },
  },
  deleteKey: {
    method: 'DELETE',
    path: '/keys/{uid}',
    tag: 'keys',
    summary: 'Delete an API key',
    description:
      "It stops working at once. Administrators delete the keys of others, but none of a person with a role above theirs. An owner's key, and the operator's key, is deleted only if an owner of the team has another key. A browser session does not count as such a key. For all keys except the operator's, an owner who signs in with an identity provider is enough. Without an operator's key, no hosted worker can connect and nobody can create teams, until `bin/runyard keys replace-operator-key` makes a new key on the service's machine.",
    allow: { user: 'viewer' },
    params: z.object({ uid: z.string().meta({ description: 'UID of the key' }) }),
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: {
      403: 'Its person has a role above yours',
      404: 'No such key, or you may not delete it',
      409: "It is the operator's key or an owner's, and no owner of the team has another key",
    },
  },
} as const satisfies Record<string, Route>;
