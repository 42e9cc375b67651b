import { z } from 'zod';

/** The person, agent or service account that created or executed a run. */
export const UserProfile = z
  .object({
    type: z.enum(['user', 'service_account']),
    uid: z.string(),
    display_name: z.string().optional(),
    email: z.string().optional(),
    photo_url: z.string().optional(),
  })
  .meta({ id: 'UserProfile', description: 'A person, or the service account that an agent key runs as' });
export type UserProfile = z.infer<typeof UserProfile>;

/** Whose a resource is. */
export const Scope = z
  .object({ type: z.enum(['User', 'Team']), uid: z.string().optional() })
  .meta({ id: 'Scope', description: 'Whose a resource is' });
export type Scope = z.infer<typeof Scope>;

/** The position of a list's next page. */
export const PageInfo = z
  .object({
    has_next_page: z.boolean(),
    next_cursor: z.string().optional().meta({ description: 'Opaque and signed; absent on the last page' }),
  })
  .meta({ id: 'PageInfo' });
export type PageInfo = z.infer<typeof PageInfo>;
