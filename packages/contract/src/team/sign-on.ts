/** Single sign-on: people sign in with an identity provider (OpenID Connect) of the operator. */
import { z } from 'zod';
import { Text } from '../wire/primitives.ts';

/** A person must complete the sign-in at the identity provider within this time. */
export const signOnMinutes = 10;

/** Path of the page to which identity providers send the browser back. */
export const signOnPath = '/sign-in';

export const SignOnProvider = z
  .object({
    id: z.string().describe('Id of the provider in the file of the operator'),
    name: z.string().describe('Name of the provider, for the button of the sign-in page'),
  })
  .meta({ id: 'SignOnProvider', description: 'An identity provider with which people sign in' });
export type SignOnProvider = z.infer<typeof SignOnProvider>;

export const ListSignOnProvidersResponse = z
  .object({ providers: z.array(SignOnProvider).describe('In the order of the file; empty: single sign-on is off') })
  .meta({ id: 'ListSignOnProvidersResponse', description: 'Identity providers with which people sign in' });

/** A path of this service. The second character cannot be a slash or backslash, because browsers would then read a host. */
const ownPath = /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/;

export const StartSignOnRequest = z
  .object({
    provider: Text.min(1).max(40).describe('Id of a provider'),
    next: Text.max(1000)
      .regex(ownPath, { error: 'must be a path of this service, such as /runs' })
      .optional()
      .meta({ description: 'Path to open after the sign-in' }),
    invitation: Text.min(1).max(200).optional().describe('Key of an invitation that the person accepts by the sign-in'),
  })
  .meta({ id: 'StartSignOnRequest', description: 'A sign-in with an identity provider that begins' });
export type StartSignOnRequest = z.infer<typeof StartSignOnRequest>;

export const StartSignOnResponse = z
  .object({ url: z.string().describe('Address of the identity provider, which the browser opens') })
  .meta({ id: 'StartSignOnResponse', description: 'Where the sign-in continues' });
export type StartSignOnResponse = z.infer<typeof StartSignOnResponse>;
