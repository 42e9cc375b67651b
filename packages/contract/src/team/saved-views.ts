/** Views of the dashboard that a person has saved under names. */
import { z } from 'zod';
import { maxSavedViews } from '../limits.ts';
import { NonBlank, Timestamp, Uuid } from '../wire/primitives.ts';

const Name = NonBlank.max(100).describe('Name for people, at most 100 characters');

/**
 * A path of the dashboard. Refuses `//host` and `/\host`, because a browser would go to another host. Refuses white space, because a
 * browser removes white space before it reads the path.
 */
const Path = z
  .string()
  .min(1)
  .max(4000)
  .regex(/^\/(?!\/)[^\s\\\p{C}]*$/u, {
    error: 'must be a path of the dashboard that begins with one slash, without spaces and backslashes',
  })
  .describe('Path in the dashboard with its query, such as `/runs?state=FAILED`, at most 4,000 characters');

const Position = z
  .int()
  .min(0)
  .max(maxSavedViews - 1)
  .describe('Place among the views of the person, from 0');

export const SavedView = z
  .object({ id: Uuid.describe('Id of the view'), name: Name, path: Path, position: Position, created_at: Timestamp })
  .meta({ id: 'SavedView', description: 'A view of the dashboard that a person has saved' });
export type SavedView = z.infer<typeof SavedView>;

export const ListSavedViewsResponse = z
  .object({ saved_views: z.array(SavedView).describe('In the order of the person') })
  .meta({ id: 'ListSavedViewsResponse', description: 'The saved views of a person in a team' });

export const CreateSavedViewRequest = z
  .object({ name: Name, path: Path })
  .meta({ id: 'CreateSavedViewRequest', description: 'Request to save a view; it becomes the last one' });
export type CreateSavedViewRequest = z.infer<typeof CreateSavedViewRequest>;

export const UpdateSavedViewRequest = z
  .object({
    name: Name.optional(),
    path: Path.optional(),
    position: Position.optional().describe(
      'New position from 0: later views move down; a position beyond the end means the end',
    ),
  })
  .meta({ id: 'UpdateSavedViewRequest', description: 'Members that change' });
export type UpdateSavedViewRequest = z.infer<typeof UpdateSavedViewRequest>;
