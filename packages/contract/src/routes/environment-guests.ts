import { z } from 'zod';
import { administrators } from '../access.ts';
import { EnvironmentGuest, ListEnvironmentGuestsResponse } from '../environment-guests.ts';
import { EnvironmentSharing } from '../environments.ts';
import { DeleteResponse } from '../keys.ts';
import { maxEnvironmentGuests } from '../limits.ts';
import type { Route } from '../route.ts';

const environment = z.object({ uid: z.string().meta({ description: 'Id of the environment: 22 of [A-Za-z0-9]' }) });
const guest = environment.extend({ userUid: z.string().meta({ description: 'UID of the person, as in profiles' }) });
const path = '/agent/environments/{uid}/guests';

export const environmentGuestRoutes = {
  listEnvironmentGuests: {
    method: 'GET',
    path,
    tag: 'environments',
    summary: 'List the guests of an environment',
    allow: administrators,
    params: environment,
    answer: { status: 200, description: 'Guests, first admitted first', schema: ListEnvironmentGuestsResponse },
    errors: { 404: 'No such environment, or it belongs to another team' },
  },
  admitEnvironmentGuest: {
    method: 'PUT',
    path: `${path}/{userUid}`,
    tag: 'environments',
    summary: 'Admit a person of another team to an environment',
    description:
      'A guest sees the environment and starts runs in it with a personal key. The runs belong to the team of the guest, and reach repositories with the credentials of that team. They get none of the secrets that the environment names. A guest changes nothing.',
    allow: administrators,
    params: guest,
    answer: { status: 200, description: 'The guest, also if the person was one before', schema: EnvironmentGuest },
    errors: {
      404: 'No such environment, it belongs to another team, or there is no such person',
      409: `The environment has ${maxEnvironmentGuests} guests`,
    },
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
    errors: { 404: 'No such environment, it belongs to another team, or the person is no guest of it' },
  },
  shareEnvironment: {
    method: 'POST',
    path: '/agent/environments/{uid}/share',
    tag: 'environments',
    summary: 'Share an environment by its link',
    description:
      'Every person who has its uid may use it as a guest does, with a personal key. People who read it or name it in a run find it in their lists from then on. Doing it twice is not an error.',
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
    description: 'People who came by the link lose the environment at once. Guests keep it.',
    allow: administrators,
    params: environment,
    answer: { status: 200, description: 'It is not shared', schema: EnvironmentSharing },
    errors: { 404: 'No such environment, or it belongs to another team' },
  },
} as const satisfies Record<string, Route>;
