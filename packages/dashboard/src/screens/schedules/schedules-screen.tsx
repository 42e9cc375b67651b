import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { Find, hasWords, NothingFound } from '../../parts/find.tsx';
import { Icon } from '../../parts/icon.tsx';
import { useOptimistic } from '../../parts/optimistic.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleLink } from '../../parts/role-button.tsx';
import { Ago } from '../../parts/time.tsx';
import { CronWords } from './cron-words.tsx';
import { FireLegend, FireStrip } from './fire-strip.tsx';
import { ScheduleForm } from './schedule-form.tsx';
import { switchOf } from './switch.ts';

const route = getRouteApi('/shell/schedules');

/** Lists the schedules. A row shows when the schedule is due next, and whether it started runs at the last times. */
export function SchedulesScreen() {
  const client = useClient();
  const { team } = useSession();
  const navigate = useNavigate();
  const search = route.useSearch();
  const [words, setWords] = useState('');
  const { data, error, refetch } = useQuery({
    queryKey: ['schedules', team.uid],
    queryFn: async () => (await client.listSchedules({ query: { include: ['fires'] } })).schedules,
  });
  const shown = (data ?? []).filter(({ name }) => hasWords(words, name));
  const switched = useOptimistic();
  const isNew = oneOf(search.new) !== undefined;
  const close = () => void navigate({ to: '/schedules', search: {} });
  return (
    <Page
      title="Schedules"
      actions={
        <>
          <Find words={words} change={setWords} />
          <RoleLink needs="member" className="btn pri" to="/schedules" search={{ new: 'true' }}>
            <Icon name="plus" small />
            New schedule
          </RoleLink>
        </>
      }
    >
      {isNew && (
        <div className="pad">
          <ScheduleForm
            prompt={oneOf(search.prompt)}
            model={oneOf(search.model)}
            environment={oneOf(search.environment)}
            close={close}
          />
        </div>
      )}
      {error ? (
        <div className="pad">
          <Problem error={error} onRetry={() => void refetch()} />
        </div>
      ) : data === undefined ? (
        <SkeletonRows />
      ) : data.length === 0 && !isNew ? (
        <Empty
          title="No schedule yet"
          command="bin/runyard schedules create --name nightly --cron '0 3 * * *' 'Update the dependencies'"
          action={
            <RoleLink needs="member" className="btn pri" to="/schedules" search={{ new: 'true' }}>
              New schedule
            </RoleLink>
          }
        >
          A schedule starts a run of the same prompt at each of its times.
        </Empty>
      ) : (
        <>
          <div className="filters hide-l">
            <FireLegend />
          </div>
          <Problem error={switched.error} />
          <table className="tbl">
            <thead>
              <tr>
                <th>Schedule</th>
                <th className="w280">Fires</th>
                <th className="w140">Next</th>
                <th className="w230 hide-l">Last 30 times</th>
                <th className="w120 hide-m">Last run</th>
                <th className="w140">State</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((schedule) => (
                <Row key={schedule.id} schedule={schedule} change={switched.change} />
              ))}
            </tbody>
          </table>
          <NothingFound words={words} found={shown.length} />
        </>
      )}
    </Page>
  );
}

function Row({
  schedule,
  change,
}: {
  schedule: ScheduledAgentItem;
  change: ReturnType<typeof useOptimistic>['change'];
}) {
  const client = useClient();
  const may = useMay('member');
  const { team } = useSession();
  const { id, name, enabled, history } = schedule;
  const toggle = () =>
    change<ScheduledAgentItem[], boolean>({
      ...switchOf(client, schedule),
      queryKey: ['schedules', team.uid],
      alsoReads: [['schedule', id]],
      put: (all, on) => all.map((each) => (each.id === id ? { ...each, enabled: on } : each)),
    });
  return (
    <tr>
      <td>
        <span className="run-c">
          <Link to="/schedules/$scheduleId" params={{ scheduleId: id }}>
            {visibleText(name)}
          </Link>
          {schedule.last_spawn_error && <span className="say badc">{visibleText(schedule.last_spawn_error)}</span>}
        </span>
      </td>
      <td>
        <CronWords cron={schedule.cron_schedule} timezone={schedule.timezone} />
      </td>
      <td>{enabled && history?.next_run ? <Ago time={history.next_run} /> : <span className="dim">paused</span>}</td>
      <td className="hide-l">
        <FireStrip fires={schedule.last_fires ?? []} />
      </td>
      <td className="hide-m">
        {history?.last_ran ? <Ago time={history.last_ran} /> : <span className="dim">never</span>}
      </td>
      <td>
        <button
          type="button"
          role="switch"
          aria-checked={enabled}
          aria-label={`${visibleText(name)} is on${may ? '' : '. Needs the role member'}`}
          className="btn ghost sm"
          title={may ? undefined : 'Needs the role member'}
          disabled={!may}
          onClick={() => void toggle()}
        >
          <span className={`sw ${enabled ? 'on' : ''}`} />
          {enabled ? 'on' : 'paused'}
        </button>
      </td>
    </tr>
  );
}
