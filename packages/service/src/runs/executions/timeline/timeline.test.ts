import type { TimelineEventType } from '@runyard/contract/runs/timeline';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions } from '../../../../test/executions.ts';
import { appendShutdown, appendTimelineEvent } from './timeline.ts';

const t = closeAtEnd(await openTestExecutions());

test('an event that changes the run always updates updated_at, and other events update it at most once a second, and the end of a sandbox never', async () => {
  const { runId, executionId } = await t.newSession();
  /** Sets `updated_at` by SQL, adds an event, and returns whether the event changed `updated_at`. */
  const moves = async (lastChange: string, changesRun?: true, type: TimelineEventType = 'connection_denied') => {
    const [before] = await t.deps.db.query<{ at: string }>(
      `UPDATE runs SET updated_at = clock_timestamp() + ${lastChange} WHERE id = $1 RETURNING updated_at AS at`,
      [runId],
    );
    const how = changesRun ? { changesRun } : {};
    const event = { runId, executionId, payload: {} };
    if (type === 'vm_shutdown') await appendShutdown(t.deps.db, event);
    else await appendTimelineEvent(t.deps.db, { ...event, type, ...how });
    const [after] = await t.deps.db.query<{ at: string }>('SELECT updated_at AS at FROM runs WHERE id = $1', [runId]);
    return after?.at !== before?.at;
  };
  // For a recent change, use a time one minute in the future, so that it still counts as recent on a slow machine.
  expect(await moves("interval '1 minute'")).toBe(false);
  expect(await moves("interval '1 minute'", true)).toBe(true);
  expect(await moves("interval '-2 seconds'")).toBe(true);
  expect(await moves("interval '-2 seconds'", undefined, 'vm_shutdown')).toBe(false);
});
