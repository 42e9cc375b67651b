import { z } from 'zod';
import { Text, Timestamp } from '../wire/primitives.ts';
import { PageInfo, UserProfile } from '../wire/profiles.ts';
import { QueryTime } from '../wire/query-time.ts';

/** Names and values of the members of the changed object. */
const State = z.record(z.string(), z.unknown());

/** The object that was changed. */
export const AuditSubject = z
  .object({
    type: z.string().describe('Kind of the thing, such as key, member or environment'),
    uid: z.string().describe('Id of the thing'),
    name: z.string().optional().describe('Name of the thing at that time'),
  })
  .meta({ id: 'AuditSubject', description: 'The thing that a change was about' });

/** Origin of a change. */
export const AuditOrigin = z
  .object({
    address: z.string().optional().describe('IP address of the client, as the service saw it'),
    user_agent: z.string().optional().describe('Header User-Agent of the request, at most 300 characters'),
    request_id: z.string().optional().describe('Header X-Request-Id of the answer'),
    key_uid: z.string().optional().describe('UID of the API key of the request'),
  })
  .meta({ id: 'AuditOrigin', description: 'Origin of a change' });

/** One change. */
export const AuditEntry = z
  .object({
    id: z.string().describe('Id of the entry'),
    occurred_at: Timestamp.describe('When the change was made, RFC 3339 in UTC'),
    actor: UserProfile.describe('Person or agent that made the change'),
    action: z.string().describe('The action, such as member.update'),
    subject: AuditSubject,
    before: State.optional().describe('The changed members before the change; absent: the thing is new'),
    after: State.optional().describe('The changed members after the change; absent: the thing was deleted'),
    origin: AuditOrigin,
  })
  .meta({ id: 'AuditEntry', description: 'A change: author, action, thing and origin' });
export type AuditEntry = z.infer<typeof AuditEntry>;

export const ListAuditEntriesQuery = z.object({
  limit: z.int().min(1).max(500).default(50).describe('Entries of a page, 1 to 500'),
  cursor: Text.max(8192).optional().describe('`next_cursor` of the page before'),
  actor: Text.optional().describe('Only changes of the person or agent with this UID'),
  action: Text.optional().describe('Only changes of this kind, such as key.create'),
  subject_type: Text.optional().describe('Only changes of this kind of thing, such as key'),
  subject_uid: Text.optional().describe('Only changes of the thing with this id'),
  since: QueryTime.optional().describe('Only changes at this time or later, RFC 3339'),
  until: QueryTime.optional().describe('Only changes before this time, RFC 3339'),
});
export type ListAuditEntriesQuery = z.infer<typeof ListAuditEntriesQuery>;

export const ListAuditEntriesResponse = z
  .object({
    entries: z.array(AuditEntry).describe('Changes, newest first'),
    page_info: PageInfo,
  })
  .meta({ id: 'ListAuditEntriesResponse', description: 'Changes in a team' });
export type ListAuditEntriesResponse = z.infer<typeof ListAuditEntriesResponse>;
