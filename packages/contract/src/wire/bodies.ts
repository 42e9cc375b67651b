/** Bodies that many routes share. */
import { z } from 'zod';

/** A request whose path has all information. */
export const EmptyRequest = z.object({}).meta({ id: 'EmptyRequest', description: 'No members' });

/** An answer whose status has all information. */
export const EmptyResponse = z
  .object({})
  .meta({ id: 'EmptyResponse', description: 'No members: the status is the whole answer' });

export const DeleteResponse = z
  .object({
    success: z.literal(true).describe('It is gone'),
  })
  .meta({ id: 'DeleteResponse', description: 'The thing was deleted' });
