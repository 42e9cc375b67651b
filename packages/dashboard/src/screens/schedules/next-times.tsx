import { keepPreviousData } from '@tanstack/react-query';
import { Fragment, useEffect, useState } from 'react';
import { failureOf, statusOf } from '../../api/problem.ts';
import { useTeamRead } from '../../api/read.ts';
import { P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { exactText } from '../../parts/format.ts';
import { Ago } from '../../parts/time.tsx';
import { onTwoClocks } from './clocks.ts';

const pauseMs = 300;
/** For a later time, `Ago` shows only its date, which is already in the row. */
const relativeMs = 7 * 24 * 60 * 60 * 1000;

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
  const asked = { cron: useSettled(cron), timezone: useSettled(timezone) };
  const { data, error } = useTeamRead(
    ['next-times', asked.cron, asked.timezone],
    (client) => client.previewSchedule({ body: { cron_schedule: asked.cron, timezone: asked.timezone || undefined } }),
    { placeholderData: keepPreviousData, refetchInterval: 60_000 },
  );
  const faults = statusOf(error) === 400 ? failureOf(error).members : undefined;
  return {
    times: error ? [] : (data?.upcoming_runs ?? []),
    timezone: data?.timezone ?? 'UTC',
    isStale: asked.cron !== cron || asked.timezone !== timezone,
    faultOf: (path) => faults?.get(path),
  };
}

/**
 * Shows the next times in the time zone of the schedule, and in that of the browser if its clock shows another time. Also shows how long it
 * is until each time, and where clocks change.
 */
export function NextTimes({
  times,
  timezone,
  isStale = false,
}: Pick<Preview, 'times' | 'timezone'> & { isStale?: boolean }) {
  if (times.length === 0) return null;
  const hereZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <Stack as="section" tone={isStale ? 'dim' : undefined} gap={1} small aria-label="Next times" aria-busy={isStale}>
      {onTwoClocks(times, { zone: timezone, hereZone, now: Date.now() }).map(({ time, own, here, change }) => (
        <Fragment key={time}>
          {change !== undefined && <P tone="wait">{change}</P>}
          <Row as="p" wrap title={exactText(Date.parse(time))}>
            <span>{own}</span>
            {here !== undefined && <Text tone="muted">{`${here} here`}</Text>}
            {Date.parse(time) - Date.now() < relativeMs && (
              <Text tone="dim">
                <Ago time={time} />
              </Text>
            )}
          </Row>
        </Fragment>
      ))}
    </Stack>
  );
}
