import type { Settings } from '@runyard/contract/settings';
import type { Domain } from '../domain.ts';

/** Teams, people, keys, agent identities and the audit log. */
export function accessDomain({
  settings,
}: {
  readonly settings: Pick<Settings, 'RUNYARD_RETENTION_AUDIT_DAYS'>;
}): Domain {
  const days = settings.RUNYARD_RETENTION_AUDIT_DAYS;
  const entries = { table: 'audit_entries', isOver: `occurred_at < now() - interval '${days} days'` };
  return {
    name: 'access',
    retention: {
      rows: [
        ...(days === 0 ? [] : [entries]),
        { table: 'audit_days', isOver: `day < (now() AT TIME ZONE 'UTC')::date - 1` },
        { table: 'team_invitations', isOver: 'expires_at < now()' },
      ],
    },
  };
}
