import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { failureOf, statusOf } from '../../api/problem.ts';
import { useClient, useSession } from '../../api/session.ts';
import { exactText } from '../../parts/format.ts';
import { Ago } from '../../parts/time.tsx';

const pauseMs = 300;

/** Returns the value only after it has not changed for a moment, so that the page does not send a request for each key press. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** The times at which an unsaved expression would fire. */
export interface Preview {
  readonly times: readonly string[];
  /** IANA name of the time zone in which the times are shown. */
  readonly timezone: string;
  readonly isStale: boolean;
  /** Returns the fault of a member of the request. */
  readonly faultOf: (path: string) => { readonly message: string } | undefined;
}

/** Asks the service for the next times of an expression while a person writes it. */
export function usePreview(cron: string, timezone: string): Preview {
  const client = useClient();
  const { team } = useSession();
  const asked = { cron: useSettled(cron), timezone: useSettled(timezone) };
  const { data, error } = useQuery({
    queryKey: ['next-times', team.uid, asked.cron, asked.timezone],
    queryFn: async () =>
      await client.previewSchedule({ body: { cron_schedule: asked.cron, timezone: asked.timezone || undefined } }),
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });
  const faults = statusOf(error) === 400 ? failureOf(error).members : undefined;
  return {
    times: error ? [] : (data?.upcoming_runs ?? []),
    timezone: data?.timezone ?? 'UTC',
    isStale: asked.cron !== cron || asked.timezone !== timezone,
    faultOf: (path) => faults?.get(path),
  };
}

/** Shows the next times in the time zone of the schedule. Also shows how long it is until each time. */
export function NextTimes({ times, timezone, isStale }: Pick<Preview, 'times' | 'timezone' | 'isStale'>) {
  if (times.length === 0) return null;
  return (
    <section className={`stack s1 small ${isStale ? 'dim' : ''}`} aria-label="Next times" aria-busy={isStale}>
      {times.map((time) => (
        <NextTime key={time} time={time} timezone={timezone} />
      ))}
    </section>
  );
}

/** Shows a time in the time zone of the schedule, and how long it is until then. */
export function NextTime({ time, timezone }: { time: string; timezone: string }) {
  const at = Date.parse(time);
  const own = new Intl.DateTimeFormat('en-GB', {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    timeZone: timezone,
    timeZoneName: 'short',
  });
  return (
    <span className="row" title={exactText(at)}>
      <span>{own.format(at)}</span>
      <span className="dim">
        <Ago time={time} />
      </span>
    </span>
  );
}
