import { z } from 'zod';
import { maxCodeHostCredentials } from '../limits.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import { CodeHostCredential, CreateCodeHostCredentialRequest, ListCodeHostCredentialsResponse } from './code-hosts.ts';

/**
 * Agent keys are refused, because a program in a sandbox may have such a key, and must not choose the credentials for its
 * repositories.
 */
export const codeHostRoutes = {
  listCodeHostCredentials: {
    method: 'GET',
    path: '/code-hosts',
    tag: 'code_hosts',
    summary: 'List the credentials of code hosts',
    description:
      "Members see the team's credentials and their own, administrators see all credentials in the team. No answer holds a secret part.",
    allow: { user: 'member' },
    answer: { status: 200, description: 'Credentials, oldest first', schema: ListCodeHostCredentialsResponse },
  },
  createCodeHostCredential: {
    method: 'POST',
    path: '/code-hosts',
    tag: 'code_hosts',
    summary: 'Store a credential of the code host',
    description:
      'The gateway adds it to the git requests of runs, so that they can clone private repositories and push; no sandbox sees it. If several credentials match, a personal one has priority over one of the team, and one for the owner has priority over one for every owner. Only administrators can store credentials of the team.',
    allow: { user: 'member', byBody: { member: 'scope', roles: { team: 'admin' } } },
    body: CreateCodeHostCredentialRequest,
    once: 'createCodeHostCredential',
    answer: { status: 201, description: 'Stored', schema: CodeHostCredential },
    errors: {
      400: 'A wrong value, a private_key that is not an RSA key, or a host from which this service does not clone',
      409: `There already is one for this host and owner, the team or person already has ${maxCodeHostCredentials}, or the Idempotency-Key was used with another body`,
    },
  },
  deleteCodeHostCredential: {
    method: 'DELETE',
    path: '/code-hosts/{credentialId}',
    tag: 'code_hosts',
    summary: 'Delete a credential of a code host',
    description:
      'Requests of git that begin later are sent without it. Installation tokens from it expire at the code host within an hour, and are not used any more.',
    allow: { user: 'member' },
    params: z.object({ credentialId: z.string().meta({ description: 'Id of the credential' }) }),
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { 404: 'No such credential, or you may not delete it' },
  },
} as const satisfies Record<string, Route>;
