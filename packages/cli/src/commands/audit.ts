/** The audit log of the team. */
import type { AuditEntry, ListAuditEntriesQuery } from '@runyard/contract/team/audit';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';

/** Lists changes in the team, newest first. */
export async function listAudit(
  context: Context,
  { json, ...query }: Partial<ListAuditEntriesQuery> & { readonly json?: true },
): Promise<void> {
  const found = await connect(context).listAuditEntries({ query });
  const now = Date.now();
  const columns: Column<AuditEntry>[] = [
    { header: 'WHEN', text: ({ occurred_at }) => formatAgo(occurred_at, now), raw: ({ occurred_at }) => occurred_at },
    { header: 'WHO', text: ({ actor }) => actor.display_name ?? actor.uid },
    { header: 'ACTION', text: ({ action }) => action },
    { header: 'ID', text: ({ subject }) => subject.uid },
    { header: 'NAME', flexible: true, text: ({ subject }) => subject.name ?? '' },
  ];
  printList(context, { columns, rows: found.entries, json: found, none: 'no changes' }, json ? { json } : {});
}
