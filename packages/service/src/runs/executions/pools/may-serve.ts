/**
 * SQL conditions on an execution and a worker's connection. They compare team, pool and key, because a worker's name proves nothing.
 */

import { mayConnectToPool } from '../../../team/access/keys/may-connect-to-pool.ts';
import { isValidKey, mayRunWorkersIn } from '../../../team/access/keys/valid-key.ts';

/** SQL: the key of the connection `c` is valid, its owner may run workers, and it may serve the hosted pool, or connect to the pool of the team. */
export const hasKey = (c: string): string => `
  EXISTS (SELECT FROM api_keys k WHERE k.id = ${c}.key_id AND ${isValidKey('k')} AND ${mayRunWorkersIn('k', 'k.team_id')}
    AND CASE WHEN ${c}.team_id IS NULL THEN k.is_operator
      ELSE k.team_id = ${c}.team_id AND ${mayConnectToPool('k', `${c}.team_id`, `${c}.worker_id`)} END)`;

/** SQL: the execution `e` is of the team and the pool that the connection `c` serves. */
export const isInPool = (e: string, c: string): string => `
  CASE WHEN ${c}.team_id IS NULL THEN ${e}.pool = '' ELSE ${e}.team_id = ${c}.team_id AND ${e}.pool = ${c}.worker_id END`;
