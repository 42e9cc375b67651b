/** The audit log of the team. */
import type { AuditEntry, ListAuditEntriesQuery } from '@runyard/contract/team/audit';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';
import { asJson, wholeNumber } from '../options.ts';

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

/** Declares the command `audit`. */
export function declareAudit(command: Command): void {
  command
    .option('--limit <count>', 'how many, at most 500 (default: 50)', wholeNumber)
    .option('--actor <uid>', 'only changes by a person or agent')
    .option('--action <name>', 'only changes of one kind, such as key.create')
    .option('--subject <uid>', 'only changes of a thing')
    .option('--since <time>', 'only changes at this time or later, RFC 3339')
    .option('--until <time>', 'only changes before this time, RFC 3339')
    .option(...asJson)
    .action(async ({ subject, ...options }) =>
      listAudit(processContext(), {
        ...options,
        ...(subject === undefined ? {} : { subject_uid: subject }),
      }),
    );
}
