/** The audit log of the team. */
import { request } from '../../route-commands/row.ts';

/** The command `audit`: lists changes in the team, newest first. */
export const audit = [
  request('listAuditEntries', '', '', {
    flags: {
      '--limit <count>': 'limit',
      '--actor <uid>': 'actor',
      '--action <name>': 'action',
      '--subject <uid>': 'subject_uid',
      '--since <time>': 'since',
      '--until <time>': 'until',
    },
    list: {
      of: 'entries',
      columns: [
        { header: 'WHEN', ago: ({ occurred_at }) => occurred_at },
        { header: 'WHO', text: ({ actor }) => actor.display_name ?? actor.uid },
        { header: 'ACTION', text: ({ action }) => action },
        { header: 'ID', text: ({ subject }) => subject.uid },
        { header: 'NAME', flexible: true, text: ({ subject }) => subject.name ?? '' },
      ],
      none: 'no changes',
    },
  }),
];
