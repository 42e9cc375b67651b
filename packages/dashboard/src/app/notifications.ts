/** Notifications of the browser about questions of runs, while the page is hidden. */

import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { teamParameter, useClient, useSession } from '../api/session.ts';

/** Interval in milliseconds at which a hidden page reads the runs that wait, because it has no event stream. */
const readEveryMs = 30_000;
/** Maximum number of notifications after one read. */
const mostAtOnce = 3;

const askedAt = ({ blocked_on: asked, updated_at: changedAt }: RunItem): number =>
  Date.parse(asked?.asked_at ?? changedAt);

/**
 * Notifies the person about each question that a run of the team asks while this component is mounted. The shell mounts it while the page
 * is hidden and the person allows notifications.
 */
export function Notifications(): null {
  const client = useClient();
  const { team, teams } = useSession();
  const navigate = useNavigate();
  const { data: runs } = useQuery({
    queryKey: ['questions', team.uid],
    queryFn: async () =>
      (
        await client.listRuns({
          query: { state: ['BLOCKED'], view: 'summary', sort_by: 'updated_at', sort_order: 'desc', limit: 20 },
        })
      ).runs,
    refetchInterval: readEveryMs,
    refetchIntervalInBackground: true,
    // The first read after the page was hidden must show which questions exist already, so that they cause no notification.
    gcTime: 0,
  });
  /** Time of the newest question that the page has read. */
  const newest = useRef<number>(undefined);
  useEffect(() => {
    if (runs === undefined) return;
    const before = newest.current;
    newest.current = Math.max(before ?? 0, ...runs.map(askedAt));
    if (before === undefined) return;
    for (const run of runs.filter((each) => askedAt(each) > before).slice(0, mostAtOnce)) {
      const note = notify(run);
      if (note === undefined) return;
      note.onclick = () => {
        window.focus();
        note.close();
        const search = teams.length > 1 ? { [teamParameter]: team.uid } : {};
        void navigate({ to: '/runs/$runId', params: { runId: run.run_id }, search });
      };
    }
  }, [runs, team, teams, navigate]);
  return null;
}

/** Shows a notification. Two tabs of the browser show only one for the same run, because it has the id of the run as its tag. */
function notify({ run_id: tag, title }: RunItem): Notification | undefined {
  try {
    return new Notification('A run needs your answer', { body: visibleText(title), tag });
  } catch {
    // Browsers of phones have the class, but throw an error here. They show only notifications of service workers.
    return undefined;
  }
}
