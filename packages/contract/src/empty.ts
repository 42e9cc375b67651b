/** Bodies without members. */
import { z } from 'zod';

/** A request that says all by its path. */
export const EmptyRequest = z.object({}).meta({ id: 'EmptyRequest', description: 'No members' });

/** An answer that says all by its status. */
export const EmptyResponse = z
  .object({})
  .meta({ id: 'EmptyResponse', description: 'No members: the status says it all' });
