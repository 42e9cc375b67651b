import { z } from 'zod';

/** Kinds of profiles. */
export const UserProfileType = z.enum(['user', 'service_account']).meta({ id: 'UserProfileType' });

/** Who created or executed a run. */
export const UserProfile = z
  .object({
    type: UserProfileType,
    uid: z.string(),
    display_name: z.string().optional(),
    email: z.string().optional(),
    photo_url: z.string().optional(),
  })
  .meta({ id: 'UserProfile', description: 'A person, or the service account that an agent key runs as' });
export type UserProfile = z.infer<typeof UserProfile>;

/** Kinds of owners. */
export const ScopeType = z.enum(['User', 'Team']).meta({ id: 'ScopeType' });

/** Whose a resource is. */
export const Scope = z
  .object({
    type: ScopeType,
    uid: z.string().optional(),
  })
  .meta({ id: 'Scope', description: 'Whose a resource is' });
export type Scope = z.infer<typeof Scope>;

/** Where a list goes on. */
export const PageInfo = z
  .object({
    has_next_page: z.boolean(),
    next_cursor: z.string().optional().meta({ description: 'Opaque and signed; absent on the last page' }),
  })
  .meta({ id: 'PageInfo' });
export type PageInfo = z.infer<typeof PageInfo>;
