import { z } from 'zod';
import { Timestamp } from './primitives.ts';
import { UserProfile } from './profiles.ts';

/** A person of another team who may use an environment. */
export const EnvironmentGuest = z
  .object({
    user: UserProfile.describe('The person'),
    granted_at: Timestamp.describe('When the person was first admitted, RFC 3339 in UTC'),
  })
  .meta({ id: 'EnvironmentGuest', description: 'A person of another team who may use an environment' });
export type EnvironmentGuest = z.infer<typeof EnvironmentGuest>;

export const ListEnvironmentGuestsResponse = z
  .object({ guests: z.array(EnvironmentGuest).describe('Guests, first admitted first') })
  .meta({ id: 'ListEnvironmentGuestsResponse', description: 'Guests of an environment' });
