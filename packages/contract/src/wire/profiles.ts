import { z } from 'zod';

/** Kinds of profiles. */
export const UserProfileType = z
  .enum(['user', 'service_account'])
  .meta({ id: 'UserProfileType', description: '`user`: a person. `service_account`: what an agent key acts as' });

/** The person, agent or service account that created or executed a run. */
export const UserProfile = z
  .object({
    type: UserProfileType,
    uid: z.string().describe('UID of the user or service account'),
    display_name: z.string().optional().describe('Name for people'),
    email: z.string().optional().describe('Email address'),
    photo_url: z.string().optional().describe('Picture'),
  })
  .meta({ id: 'UserProfile', description: 'A person, or the service account that an agent key runs as' });
export type UserProfile = z.infer<typeof UserProfile>;

/** Kinds of owners. */
export const ScopeType = z
  .enum(['User', 'Team'])
  .meta({ id: 'ScopeType', description: "`User`: one person's. `Team`: the team's" });

/** The owner of a resource. */
export const Scope = z
  .object({
    type: ScopeType,
    uid: z.string().optional().describe('UID of the person or the team'),
  })
  .meta({ id: 'Scope', description: 'The owner of a resource' });
export type Scope = z.infer<typeof Scope>;

/** Tells whether a list has a next page, and where that page begins. */
export const PageInfo = z
  .object({
    has_next_page: z.boolean().describe('True: there is a next page'),
    next_cursor: z.string().optional().meta({ description: 'Opaque and signed; absent on the last page' }),
  })
  .meta({ id: 'PageInfo', description: 'Position of the next page of a list' });
export type PageInfo = z.infer<typeof PageInfo>;
