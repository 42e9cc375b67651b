import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { visibleText } from '@runyard/contract/wire/visible';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { Pad, Text } from '../../parts/blocks.tsx';
import { Button, FilterBar } from '../../parts/controls.tsx';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { Find, hasWords, NothingFound } from '../../parts/find.tsx';
import { useKeys } from '../../parts/keys.ts';
import { useOptimistic } from '../../parts/optimistic.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleLink } from '../../parts/role-button.tsx';
import { Cell, RunCell, Say, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';
import { CronWords } from './cron-words.tsx';
import { FireLegend, FireStrip } from './fire-strip.tsx';
import { ScheduleForm } from './schedule-form.tsx';
import styles from './schedules.module.css';
import { switchOf } from './switch.ts';
import { useSchedules } from './use-schedules.ts';

const route = getRouteApi('/shell/schedules');

/** Lists the schedules. A row shows when the schedule is due next, and whether it started runs at the last times. */
export function SchedulesScreen() {
  const navigate = useNavigate();
  const search = route.useSearch();
  const [words, setWords] = useState('');
  const { data, error, refetch } = useSchedules();
  const shown = (data ?? []).filter(({ name }) => hasWords(words, name));
  const switched = useOptimistic();
  const isNew = oneOf(search.new) !== undefined;
  const close = () => void navigate({ to: '/schedules', search: {} });
  const may = useMay('member');
  const create = () => may && void navigate({ to: '/schedules', search: { new: 'true' } });
  useKeys([{ key: 'c', does: 'New schedule', run: create }]);
  return (
    <Page
      title="Schedules"
      actions={
        <>
          <Find words={words} change={setWords} />
          <RoleLink needs="member" kind="primary" icon="plus" to="/schedules" search={{ new: 'true' }}>
            New schedule
          </RoleLink>
        </>
      }
    >
      {isNew && (
        <Pad>
          <ScheduleForm
            prompt={oneOf(search.prompt)}
            model={oneOf(search.model)}
            environment={oneOf(search.environment)}
            close={close}
          />
        </Pad>
      )}
      {error ? (
        <Pad>
          <Problem error={error} onRetry={() => void refetch()} />
        </Pad>
      ) : data === undefined ? (
        <SkeletonRows />
      ) : data.length === 0 && !isNew ? (
        <Empty
          title="No schedule yet"
          command="bin/runyard schedules create --name nightly --cron '0 3 * * *' 'Update the dependencies'"
          action={
            <RoleLink needs="member" kind="primary" to="/schedules" search={{ new: 'true' }}>
              New schedule
            </RoleLink>
          }
        >
          A schedule starts a run of the same prompt at each of its times.
        </Empty>
      ) : (
        <>
          <FilterBar as="div" onlyWide>
            <FireLegend />
          </FilterBar>
          <Problem error={switched.error} />
          <Table
            bare
            columns={[
              { name: 'Schedule' },
              { name: 'Fires', width: 280 },
              { name: 'Next', width: 140 },
              { name: 'Last 30 times', width: 230, onlyWide: true },
              { name: 'Last run', width: 120, notNarrow: true },
              { name: 'State', width: 140 },
            ]}
          >
            {shown.map((schedule) => (
              <ScheduleRow key={schedule.id} schedule={schedule} change={switched.change} />
            ))}
          </Table>
          <NothingFound words={words} found={shown.length} />
        </>
      )}
    </Page>
  );
}

function ScheduleRow({
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
        <RunCell>
          <Link to="/schedules/$scheduleId" params={{ scheduleId: id }}>
            {visibleText(name)}
          </Link>
          {schedule.last_spawn_error && <Say tone="bad">{visibleText(schedule.last_spawn_error)}</Say>}
        </RunCell>
      </td>
      <td>
        <CronWords cron={schedule.cron_schedule} timezone={schedule.timezone} />
      </td>
      <td>{enabled && history?.next_run ? <Ago time={history.next_run} /> : <Text tone="dim">paused</Text>}</td>
      <Cell onlyWide>
        <FireStrip fires={schedule.last_fires ?? []} />
      </Cell>
      <Cell notNarrow>{history?.last_ran ? <Ago time={history.last_ran} /> : <Text tone="dim">never</Text>}</Cell>
      <td>
        <Button
          role="switch"
          aria-checked={enabled}
          aria-label={`${visibleText(name)} is on${may ? '' : '. Needs the role member'}`}
          kind="ghost"
          small
          title={may ? undefined : 'Needs the role member'}
          disabled={!may}
          onClick={() => void toggle()}
        >
          <span className={`${styles.switch} ${enabled ? styles.isOn : ''}`} />
          {enabled ? 'on' : 'paused'}
        </Button>
      </td>
    </tr>
  );
}
