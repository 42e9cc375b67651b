import type { Domain } from '../../platform/domain.ts';
import type { FailedRows } from '../../platform/store/database/sweep.ts';
import { uncountedFailures } from '../../runs/inbox/uncounted.ts';
import { oldStarts } from '../history/write.ts';
import { countFailures } from './count-failures.ts';
import { cancelReplaced, findReplacing } from './replace.ts';
import { startRoutes } from './routes.ts';
import { findStartable, startWaiting } from './settle.ts';
import { dueSchedules, type FireDeps, runSchedules } from './times/fire.ts';

export const startsDomain = (deps: FireDeps & Parameters<typeof startRoutes>[0]): Domain => ({
  name: 'starts',
  routes: () => startRoutes(deps),
  retention: { rows: [oldStarts] },
  loops: async () => {
    const failedStarts: FailedRows = new Map();
    const failedCancels: FailedRows = new Map();
    const uncounted: FailedRows = new Map();
    return [
      {
        name: 'counting failed runs of schedules and automations',
        everyMs: 1_000,
        due: [uncountedFailures],
        work: (signal) => countFailures(deps, uncounted, signal),
      },
      { name: 'firing schedules', everyMs: 1_000, due: [dueSchedules], work: (signal) => runSchedules(deps, signal) },
      {
        name: 'starting what waited for the end of a run, and cancelling replaced runs',
        everyMs: 1_000,
        due: [findStartable, findReplacing],
        work: async (signal) => {
          await startWaiting(deps, failedStarts, signal);
          await cancelReplaced(deps, failedCancels, signal);
        },
      },
    ];
  },
});
