import { z } from 'zod';
import { maxPasskeys } from '../limits.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  CreatePasskeyRequest,
  InvitedPasskeyRequest,
  ListPasskeysResponse,
  NewPasskeyOptions,
  Passkey,
  PasskeySignInOptions,
  UpdatePasskeyRequest,
} from './passkeys.ts';

const passkey = z.object({ passkeyId: z.string().meta({ description: 'Id of the passkey' }) });
const missing = { 404: 'You have no such passkey' };
const noAddress = 'Passkeys do not work at the base URL of the service, because it has no host name or no TLS';
const full = { 409: `You have ${maxPasskeys} passkeys` };

/** A passkey belongs to a person, and works in all teams of the person. So nobody else can see, add or delete it. */
export const passkeyRoutes = {
  listPasskeys: {
    method: 'GET',
    path: '/passkeys',
    tag: 'keys',
    summary: 'List your passkeys',
    allow: { user: 'viewer' },
    answer: { status: 200, description: 'Your passkeys', schema: ListPasskeysResponse },
  },
  startPasskey: {
    method: 'POST',
    path: '/passkeys/options',
    tag: 'keys',
    summary: 'Begin to add a passkey',
    description: 'A page passes `options` to `navigator.credentials.create`, and sends the result to POST /passkeys.',
    // Like a key, a passkey gives access for longer than a session.
    allow: { user: 'viewer', session: 'recent' },
    answer: { status: 200, description: 'The question for the authenticator', schema: NewPasskeyOptions },
    errors: { 403: noAddress, ...full },
  },
  createPasskey: {
    method: 'POST',
    path: '/passkeys',
    tag: 'keys',
    summary: 'Add a passkey',
    description: 'The passkey signs you in at the pages of this service, in all of your teams.',
    allow: { user: 'viewer', session: 'recent' },
    body: CreatePasskeyRequest,
    answer: { status: 201, description: 'Added', schema: Passkey },
    errors: {
      403: `${noAddress}; or the passkey is not for this person, page and question, was not verified by its authenticator, or was added already`,
      ...full,
    },
  },
  updatePasskey: {
    method: 'PATCH',
    path: '/passkeys/{passkeyId}',
    tag: 'keys',
    summary: 'Rename a passkey',
    allow: { user: 'viewer' },
    params: passkey,
    body: UpdatePasskeyRequest,
    answer: { status: 200, description: 'The passkey as it is now', schema: Passkey },
    errors: missing,
  },
  deletePasskey: {
    method: 'DELETE',
    path: '/passkeys/{passkeyId}',
    tag: 'keys',
    summary: 'Delete a passkey',
    description: 'The browsers that it signed in are signed out at once.',
    allow: { user: 'viewer' },
    params: passkey,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { ...missing, 409: 'You could not sign in again without it' },
  },
  startPasskeySignIn: {
    method: 'POST',
    path: '/passkeys/sign-in-options',
    tag: 'keys',
    summary: 'Begin a sign-in with a passkey',
    description:
      'A page passes `options` to `navigator.credentials.get`, and sends the result to POST /browser-sessions.',
    allow: { anyone: 'always' },
    answer: { status: 200, description: 'The question for the authenticator', schema: PasskeySignInOptions },
    errors: { 403: noAddress },
  },
  // The key of the invitation is the credential of this request.
  startInvitedPasskey: {
    method: 'POST',
    path: '/team-invitations/passkey-options',
    tag: 'teams',
    summary: 'Begin to accept an invitation with a passkey',
    description:
      'Does not use the invitation. A page passes `options` to `navigator.credentials.create`, and sends the result to POST /browser-sessions.',
    allow: { anyone: 'always' },
    body: InvitedPasskeyRequest,
    answer: { status: 200, description: 'The question for the authenticator', schema: NewPasskeyOptions },
    errors: { 403: `The invitation was used or withdrawn, has expired, or is unknown. ${noAddress}` },
  },
} as const satisfies Record<string, Route>;
