/** Bodies that many routes share. */
import { z } from 'zod';

/** An empty request body, for routes whose path has all information. */
export const EmptyRequest = z.object({}).meta({ id: 'EmptyRequest', description: 'No members' });

/** An empty answer, for routes whose status says everything. */
export const EmptyResponse = z
  .object({})
  .meta({ id: 'EmptyResponse', description: 'No members: the status is the whole answer' });

export const DeleteResponse = z
  .object({
    success: z.literal(true).describe('It is gone'),
  })
  .meta({ id: 'DeleteResponse', description: 'The thing was deleted' });
