import { randomUUIDv7 } from 'node:crypto';
import type { Author } from './record.ts';

/** SQL: columns of the rows that `creationEntryOf` returns, for `jsonb_to_recordset`. */
export const creationEntryColumns =
  'audit_id uuid, audit_key_id uuid, audit_address text, audit_user_agent text, audit_request_id text';

/** Returns the members of a row of input that has an entry; nothing if no key created the run. */
export function creationEntryOf(by: Pick<Author, 'keyId' | 'from'> | undefined) {
  if (by === undefined || by.keyId === null) return {};
  return {
    audit_id: randomUUIDv7(),
    audit_key_id: by.keyId,
    audit_address: by.from?.address,
    audit_user_agent: by.from?.userAgent?.slice(0, 300),
    audit_request_id: by.from?.requestId,
  };
}

/**
 * SQL: writes the entries of runs that keys created, in the statement that writes the runs, so that a create sends no further one. They
 * have no count: runs have limits of their own.
 */
export const insertCreationEntries = (input: string): string => `
      INSERT INTO audit_entries (id, team_id, actor_kind, actor_uid, action, subject_type, subject_uid, address, user_agent, request_id, key_id)
      SELECT audit_id, team_id, creator_kind, creator_uid, 'run.create', 'run', id::text, audit_address, audit_user_agent, audit_request_id,
        audit_key_id FROM ${input} WHERE audit_id IS NOT NULL`;
