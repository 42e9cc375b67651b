import type { Domain } from '../../platform/domain.ts';
import type { FailedRows } from '../../platform/store/database/sweep.ts';
import type { ScheduleDeps } from './fire.ts';
import { oldFires } from './history.ts';
import { dueSchedules, runSchedules } from './scheduler.ts';
import { cancelPreviousRuns, findCancelling, findStartable, startWaitingFires } from './settle.ts';

export const schedulesDomain = (deps: ScheduleDeps): Domain => ({
  name: 'schedules',
  retention: { rows: [oldFires] },
  loops: async () => {
    const failedStarts: FailedRows = new Map();
    const failedCancels: FailedRows = new Map();
    return [
      { name: 'firing schedules', everyMs: 1_000, due: [dueSchedules], work: (signal) => runSchedules(deps, signal) },
      {
        name: 'starting runs that waited for the end of another',
        everyMs: 1_000,
        due: [findStartable],
        work: (signal) => startWaitingFires(deps, failedStarts, signal),
      },
      {
        name: 'cancelling runs for newer ones of a schedule',
        everyMs: 1_000,
        due: [findCancelling],
        work: (signal) => cancelPreviousRuns(deps, failedCancels, signal),
      },
    ];
  },
});
