import { notificationDays } from '@runyard/contract/limits';
import type { Domain, RowRule } from '../../platform/domain.ts';
import { idAt } from '../../platform/store/database/uuid.ts';
import { changedBudgets, noteBudgets } from './budgets.ts';
import { type InboxDeps, inboxRoutes } from './routes.ts';

/**
 * Selects old notifications. Their UIDs are in the order of time, so the primary key finds them. The UID of a revision that waits has the
 * time of the revision, so its marks have a time of their own.
 */
const oldNotifications: RowRule = {
  table: 'inbox_items',
  isOver: `uid < ${idAt(`${notificationDays} days`)} AND created_at < now() - interval '${notificationDays} days'`,
};

/** The inbox of each person. State changes of runs create and resolve notifications (`write.ts`). */
export const inboxDomain = (deps: InboxDeps): Domain => ({
  name: 'inbox',
  routes: () => inboxRoutes(deps),
  retention: { rows: [oldNotifications] },
  loops: async () => [
    {
      name: 'notifying of used-up budgets',
      everyMs: 10_000,
      due: [changedBudgets],
      work: () => noteBudgets(deps.db),
    },
  ],
});
