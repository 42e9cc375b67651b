import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { visibleText } from '@runyard/contract/wire/visible';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { ListScreen } from '../../frame/list-screen.tsx';
import { oneOf } from '../../frame/search.ts';
import { Text } from '../../parts/blocks.tsx';
import { Button, FilterBar } from '../../parts/controls.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { Empty } from '../../parts/empty.tsx';
import { useOptimistic } from '../../parts/optimistic.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleLink } from '../../parts/role-button.tsx';
import { RunCell, Say } from '../../parts/table.tsx';
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
  const { prompt, model, environment } = route.useSearch();
  const switched = useOptimistic();
  return (
    <ListScreen
      title="Schedules"
      what="schedule"
      to="/schedules"
      query={useSchedules()}
      nameOf={({ name }) => name}
      form={(close) => (
        <ScheduleForm prompt={oneOf(prompt)} model={oneOf(model)} environment={oneOf(environment)} close={close} />
      )}
      empty={
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
      }
    >
      {(found) => (
        <>
          <FilterBar as="div" onlyWide>
            <FireLegend />
          </FilterBar>
          <Problem error={switched.error} />
          <DataTable
            bare
            items={found}
            keyOf={({ id }) => id}
            columns={(column) => [
              column('Schedule', {}, ScheduleLink),
              column('Fires', { width: 280 }, ({ cron_schedule: cron, timezone }) => (
                <CronWords cron={cron} timezone={timezone} />
              )),
              column('Next', { width: 140 }, ({ enabled, history }) =>
                enabled && history?.next_run ? <Ago time={history.next_run} /> : <Text tone="dim">paused</Text>,
              ),
              column('Last 30 times', { width: 230, onlyWide: true }, ({ last_fires: fires = [] }) => (
                <FireStrip fires={fires} />
              )),
              column('Last run', { width: 120, notNarrow: true }, ({ history }) =>
                history?.last_ran ? <Ago time={history.last_ran} /> : <Text tone="dim">never</Text>,
              ),
              column('State', { width: 140 }, (schedule) => <Switch schedule={schedule} change={switched.change} />),
            ]}
          />
        </>
      )}
    </ListScreen>
  );
}

const ScheduleLink = ({ id, name, last_spawn_error: fault }: ScheduledAgentItem) => (
  <RunCell>
    <Link to="/schedules/$scheduleId" params={{ scheduleId: id }}>
      {visibleText(name)}
    </Link>
    {fault && <Say tone="bad">{visibleText(fault)}</Say>}
  </RunCell>
);

function Switch({
  schedule,
  change,
}: {
  schedule: ScheduledAgentItem;
  change: ReturnType<typeof useOptimistic>['change'];
}) {
  const client = useClient();
  const may = useMay('member');
  const { team } = useSession();
  const { id, name, enabled } = schedule;
  const toggle = () =>
    change<ScheduledAgentItem[], boolean>({
      ...switchOf(client, schedule),
      queryKey: ['schedules', team.uid],
      alsoReads: [['schedule', id]],
      put: (all, on) => all.map((each) => (each.id === id ? { ...each, enabled: on } : each)),
    });
  return (
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
  );
}
