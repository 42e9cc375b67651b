import { z } from 'zod';
import { NonBlank, Timestamp, Uid22 } from '../wire/primitives.ts';
import { UserProfile } from '../wire/profiles.ts';

/** A person of another team who may use an environment. */
export const EnvironmentGuest = z
  .object({
    user: UserProfile.describe('The person, without an address'),
    granted_at: Timestamp.describe('When the person accepted, RFC 3339 in UTC'),
  })
  .meta({ id: 'EnvironmentGuest', description: 'A person of another team who may use an environment' });
export type EnvironmentGuest = z.infer<typeof EnvironmentGuest>;

const times = {
  created_at: Timestamp.describe('When it was made, RFC 3339 in UTC'),
  expires_at: Timestamp.describe('When it ends, RFC 3339 in UTC'),
};

/** An invitation as the team of the environment sees it. */
export const EnvironmentInvitation = z
  .object({
    id: z.string().describe('Id of the invitation'),
    user_uid: z.string().optional().describe('UID that was invited'),
    email: z.string().optional().describe('Address that was invited, in lower case'),
    ...times,
  })
  .meta({
    id: 'EnvironmentInvitation',
    description: 'An invitation to use an environment. It does not show whether the person exists',
  });
export type EnvironmentInvitation = z.infer<typeof EnvironmentInvitation>;

export const ListEnvironmentGuestsResponse = z
  .object({
    guests: z.array(EnvironmentGuest).describe('Guests, first accepted first'),
    invitations: z.array(EnvironmentInvitation).describe('Invitations that wait, oldest first'),
  })
  .meta({ id: 'ListEnvironmentGuestsResponse', description: 'Guests and invited people of an environment' });

export const InviteEnvironmentGuestRequest = z
  .object({
    user_uid: Uid22.optional().describe('UID of a person; not together with email'),
    email: NonBlank.max(320).optional().meta({
      description:
        'Address that the person gave when joining a team. The address was not verified, so the person also needs the id of the invitation: send it to the address. Not together with user_uid',
    }),
  })
  .refine(({ user_uid, email }) => (user_uid === undefined) !== (email === undefined), {
    error: 'needs exactly one of user_uid and email',
  })
  .meta({
    id: 'InviteEnvironmentGuestRequest',
    description: 'A person to invite',
    // The alternatives are inside `allOf`, because generators of clients create no class for a schema that is a union at its top level.
    allOf: [{ oneOf: [{ required: ['user_uid'] }, { required: ['email'] }] }],
  });
export type InviteEnvironmentGuestRequest = z.infer<typeof InviteEnvironmentGuestRequest>;

/** An invitation as the invited person sees it. */
export const OwnEnvironmentInvitation = z
  .object({
    id: z.string().describe('Id of the invitation'),
    environment_uid: z.string().describe('Id of the environment'),
    environment_name: z.string().optional().describe('Name of the environment'),
    team_name: z.string().describe('Name of the team that owns it'),
    invited_by: z.string().optional().describe('Name of the administrator who invited'),
    ...times,
  })
  .meta({ id: 'OwnEnvironmentInvitation', description: 'An invitation of yours to an environment of another team' });
export type OwnEnvironmentInvitation = z.infer<typeof OwnEnvironmentInvitation>;

export const ListOwnEnvironmentInvitationsResponse = z
  .object({ invitations: z.array(OwnEnvironmentInvitation).describe('Newest first, at most 100') })
  .meta({ id: 'ListOwnEnvironmentInvitationsResponse', description: 'Invitations that wait for your answer' });
