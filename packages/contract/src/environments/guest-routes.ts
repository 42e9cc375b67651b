import { z } from 'zod';
import { maxEnvironmentGuests } from '../limits.ts';
import { administrators } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  EnvironmentInvitation,
  InviteEnvironmentGuestRequest,
  ListEnvironmentGuestsResponse,
  ListOwnEnvironmentInvitationsResponse,
} from './environment-guests.ts';
import { EnvironmentSharing } from './environments.ts';

const environment = z.object({ uid: z.string().meta({ description: 'Id of the environment: 22 of [A-Za-z0-9]' }) });
const invitation = z.object({ guestInvitationId: z.string().meta({ description: 'Id of the invitation' }) });
const noEnvironment = 'No such environment, or it belongs to another team';
const noInvitation = 'You have no such invitation: it was withdrawn, answered, or has expired';
const guest = environment.extend({ userUid: z.string().meta({ description: 'UID of the person, as in profiles' }) });
const path = '/agent/environments/{uid}/guests';

export const environmentGuestRoutes = {
  listEnvironmentGuests: {
    method: 'GET',
    path,
    tag: 'environments',
    summary: 'List the guests and invitations of an environment',
    allow: administrators,
    params: environment,
    answer: { status: 200, description: 'Guests, first accepted first', schema: ListEnvironmentGuestsResponse },
    errors: { 404: 'No such environment, or it belongs to another team' },
  },
  inviteEnvironmentGuest: {
    method: 'POST',
    path: '/agent/environments/{uid}/guest-invitations',
    tag: 'environments',
    summary: 'Invite a person of another team to an environment',
    description:
      'The person sees the environment after accepting, and starts runs in it with a personal key. The runs belong to the team of the guest, and reach repositories with the credentials of that team. They get no secret that the environment names. A guest changes nothing. The answer does not tell whether there is such a person. A second invitation of the same person replaces the first.',
    allow: administrators,
    params: environment,
    body: InviteEnvironmentGuestRequest,
    once: 'inviteEnvironmentGuest',
    answer: { status: 201, description: 'Invited, for 30 days', schema: EnvironmentInvitation },
    errors: {
      404: noEnvironment,
      409: `The environment has ${maxEnvironmentGuests} guests and invitations, or the Idempotency-Key was used with another body`,
    },
  },
  withdrawEnvironmentInvitation: {
    method: 'DELETE',
    path: '/agent/environments/{uid}/guest-invitations/{guestInvitationId}',
    tag: 'environments',
    summary: 'Withdraw an invitation to an environment',
    allow: administrators,
    params: environment.extend(invitation.shape),
    answer: { status: 200, description: 'Withdrawn', schema: DeleteResponse },
    errors: { 404: 'No such invitation, or the environment belongs to another team' },
  },
  listEnvironmentInvitations: {
    method: 'GET',
    path: '/environment-invitations',
    tag: 'environments',
    summary: 'List your invitations to environments of other teams',
    description:
      'Those by UID. An invitation by address is accepted by its id, which the inviting team sends to the address.',
    allow: { user: 'viewer' },
    answer: { status: 200, description: 'Newest first', schema: ListOwnEnvironmentInvitationsResponse },
  },
  acceptEnvironmentInvitation: {
    method: 'POST',
    path: '/environment-invitations/{guestInvitationId}/accept',
    tag: 'environments',
    summary: 'Accept an invitation to an environment',
    description:
      "You find the environment in your lists from then on. The environment's administrators see your name, but no address.",
    allow: { user: 'viewer' },
    params: invitation,
    answer: { status: 200, description: 'You are a guest', schema: DeleteResponse },
    errors: { 404: noInvitation },
  },
  declineEnvironmentInvitation: {
    method: 'POST',
    path: '/environment-invitations/{guestInvitationId}/decline',
    tag: 'environments',
    summary: 'Decline an invitation to an environment',
    allow: { user: 'viewer' },
    params: invitation,
    answer: { status: 200, description: 'Declined', schema: DeleteResponse },
    errors: { 404: noInvitation },
  },
  leaveEnvironment: {
    method: 'DELETE',
    path: '/guest-environments/{uid}',
    tag: 'environments',
    summary: 'Leave an environment of another team',
    description: 'You are its guest no more, whether you accepted an invitation or opened its link.',
    allow: { user: 'viewer' },
    params: environment,
    answer: { status: 200, description: 'Left', schema: DeleteResponse },
    errors: { 404: 'You are not a guest of such an environment' },
  },
  removeEnvironmentGuest: {
    method: 'DELETE',
    path: `${path}/{userUid}`,
    tag: 'environments',
    summary: 'Remove a guest of an environment',
    description: 'Runs that the guest has started and that are not set up yet become FAILED `resource_not_found`.',
    allow: administrators,
    params: guest,
    answer: { status: 200, description: 'Removed', schema: DeleteResponse },
    errors: { 404: 'No such environment, it belongs to another team, or the person is not a guest of it' },
  },
  shareEnvironment: {
    method: 'POST',
    path: '/agent/environments/{uid}/share',
    tag: 'environments',
    summary: 'Share an environment by its link',
    description:
      'Every person with its uid may use it as a guest does, with a personal key. People who read it or use it in a run find it in their lists afterwards. Doing it twice is not an error.',
    allow: administrators,
    params: environment,
    answer: { status: 200, description: 'It is shared', schema: EnvironmentSharing },
    errors: { 404: 'No such environment, or it belongs to another team' },
  },
  unshareEnvironment: {
    method: 'DELETE',
    path: '/agent/environments/{uid}/share',
    tag: 'environments',
    summary: 'End the sharing of an environment by its link',
    description: 'People who came by the link lose access to the environment at once. Guests keep it.',
    allow: administrators,
    params: environment,
    answer: { status: 200, description: 'It is not shared', schema: EnvironmentSharing },
    errors: { 404: 'No such environment, or it belongs to another team' },
  },
} as const satisfies Record<string, Route>;
