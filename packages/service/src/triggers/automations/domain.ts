import type { Domain, RowRule } from '../../platform/domain.ts';
import type { FailedRows } from '../../platform/store/database/sweep.ts';
import { liveStates } from '../schedules/live-runs.ts';
import { cancelPrevious, findCancelling, findStartable, type SettleDeps, startWaiting } from './settle.ts';

/**
 * Old rows of `automation_starts` whose runs have ended; those that still wait for a run stay. Nothing needs the others any more: the log
 * of the webhook also names the runs.
 */
const oldStarts: RowRule = {
  table: 'automation_starts',
  isOver: `id < (lpad(to_hex((extract(epoch FROM now() - interval '30 days') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
    AND run_id IS NOT NULL AND NOT EXISTS (SELECT FROM runs r WHERE r.id = automation_starts.run_id AND r.state IN ${liveStates})`,
};

export const automationsDomain = (deps: SettleDeps): Domain => ({
  name: 'automations',
  retention: { rows: [oldStarts] },
  loops: async () => {
    const failedStarts: FailedRows = new Map();
    const failedCancels: FailedRows = new Map();
    return [
      {
        name: 'starting deliveries that waited for the end of a run',
        everyMs: 1_000,
        due: [findStartable],
        work: (signal) => startWaiting(deps, failedStarts, signal),
      },
      {
        name: 'cancelling runs for newer ones of an automation',
        everyMs: 1_000,
        due: [findCancelling],
        work: (signal) => cancelPrevious(deps, failedCancels, signal),
      },
    ];
  },
});
