import { z } from 'zod';
import { Text } from './primitives.ts';

/** Returns the members of a query that select one page of a list. `things`: what a page has, such as `Deliveries`. */
export const pageMembers = (things: string, { most = 100, usual = 20 } = {}) => ({
  limit: z.int().min(1).max(most).default(usual).describe(`${things} of a page, 1 to ${most}`),
  cursor: Text.max(8192).optional().meta({ description: 'next_cursor of the previous page' }),
});
