import type { ScheduledAgentItem, ScheduleFire } from '@runyard/contract/schedules/schedules';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Icon } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { MoreMenu } from '../../parts/more-menu.tsx';
import { useOptimistic } from '../../parts/optimistic.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Ago } from '../../parts/time.tsx';
import { CronWords } from './cron-words.tsx';
import { FireLegend, FireStrip } from './fire-strip.tsx';
import { NextTimes } from './next-times.tsx';
import { ScheduleForm } from './schedule-form.tsx';
import { switchOf } from './switch.ts';
import { WhyPaused } from './why-paused.tsx';

const ConfirmDialog = lazy(async () => ({ default: (await import('../../parts/dialog.tsx')).ConfirmDialog }));

const route = getRouteApi('/shell/schedules/$scheduleId');

const Crumb = () => (
  <Link to="/schedules" className="hide-m">
    Schedules
  </Link>
);

/** Shows one schedule: the next times at which it is due, the outcomes of the last times, and its prompt. */
export function ScheduleScreen() {
  const { scheduleId } = route.useParams();
  const isEditing = oneOf(route.useSearch({ select: (search) => search.edit })) !== undefined;
  const client = useClient();
  const { team } = useSession();
  const may = useMay('member');
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [isDeleting, setDeleting] = useState(false);
  const { error, attempt } = useAttempts();
  const switched = useOptimistic();
  const params = { scheduleId };
  const schedule = useQuery({
    queryKey: ['schedule', scheduleId],
    queryFn: async () => await client.getSchedule({ params }),
  });
  const fires = useQuery({
    queryKey: ['schedule', scheduleId, 'fires'],
    queryFn: async () => (await client.listScheduleFires({ params, query: { limit: 30 } })).fires,
  });
  const edit = (isOpen: boolean) =>
    void navigate({ to: '/schedules/$scheduleId', params, search: isOpen ? { edit: 'true' } : {} });
  useKeys([{ key: 'e', does: 'Edit the schedule', run: () => may && edit(true) }]);
  const { data } = schedule;
  if (statusOf(schedule.error) === 404)
    return (
      <Page title="Schedule" crumbs={<Crumb />}>
        <NotFound what="schedule" />
      </Page>
    );
  if (data === undefined)
    return (
      <Page title="Schedule" crumbs={<Crumb />}>
        {schedule.error ? <Problem error={schedule.error} /> : <SkeletonRows />}
      </Page>
    );
  const act = async (work: () => Promise<unknown>) => {
    await attempt(async () => {
      await work();
    });
    await queries.invalidateQueries({ queryKey: ['schedule', scheduleId] });
    await queries.invalidateQueries({ queryKey: ['schedules', team.uid] });
  };
  const toggle = () =>
    switched.change<ScheduledAgentItem, boolean>({
      ...switchOf(client, data),
      queryKey: ['schedule', scheduleId],
      alsoReads: [['schedules', team.uid]],
      put: (schedule, enabled) => ({ ...schedule, enabled }),
    });
  const runNow = () =>
    act(async () => {
      const started = await client.runSchedule({ params });
      if ('run_id' in started && typeof started.run_id === 'string')
        await navigate({ to: '/runs/$runId', params: { runId: started.run_id } });
    });
  return (
    <Page
      title={data.name}
      crumbs={<Crumb />}
      actions={
        <>
          <RoleButton needs="member" run={() => void runNow()}>
            <Icon name="play" small />
            Run now
          </RoleButton>
          <RoleButton needs="member" run={() => void toggle()}>
            <Icon name={data.enabled ? 'pause' : 'play'} small />
            {data.enabled ? 'Pause' : 'Resume'}
          </RoleButton>
          <RoleButton needs="member" run={() => edit(!isEditing)}>
            Edit <kbd>E</kbd>
          </RoleButton>
          <RoleButton needs="member" className="btn dan" run={() => setDeleting(true)}>
            Delete…
          </RoleButton>
          <MoreMenu path={`/agent/schedules/${data.id}`} />
        </>
      }
    >
      <div className="wide">
        <Problem error={error ?? switched.error} />
        {isEditing && <ScheduleForm schedule={data} close={() => edit(false)} />}
        {data.last_spawn_error && (
          <div className="note bad">
            <Icon name="warn" />
            <span>{visibleText(data.last_spawn_error)}</span>
          </div>
        )}
        <dl className="kv far">
          <dt>Fires</dt>
          <dd>
            <CronWords cron={data.cron_schedule} timezone={data.timezone} />{' '}
            <code className="dim">{data.cron_schedule}</code>
          </dd>
          <dt>Next times</dt>
          <dd>
            {data.enabled ? (
              <NextTimes times={data.upcoming_runs ?? []} timezone={data.timezone ?? 'UTC'} />
            ) : (
              <WhyPaused schedule={data} fires={fires.data ?? []} />
            )}
          </dd>
          <dt>While a run is live</dt>
          <dd>{(data.overlap ?? 'allow').replaceAll('_', ' ')}</dd>
          {data.executor && (
            <>
              <dt>Runs act as</dt>
              <dd>{visibleText(data.executor.display_name ?? data.executor.uid)}</dd>
            </>
          )}
          {data.agent_config?.model_id && (
            <>
              <dt>Model</dt>
              <dd>
                <code>{data.agent_config.model_id}</code>
              </dd>
            </>
          )}
          {data.agent_config?.environment_id && (
            <>
              <dt>Environment</dt>
              <dd>
                <Link className="link" to="/environments/$uid" params={{ uid: data.agent_config.environment_id }}>
                  {visibleText(data.environment?.name ?? data.agent_config.environment_id)}
                </Link>
              </dd>
            </>
          )}
        </dl>
        <section className="stack s2">
          <h2>Prompt</h2>
          <div className="ask-box">
            <Markdown text={data.prompt} />
          </div>
        </section>
        <section className="stack s2">
          <h2 className="row">
            Last times
            <Link className="link small right" to="/runs" search={{ schedule_id: scheduleId }}>
              All its runs
            </Link>
          </h2>
          <Problem error={fires.error} />
          <FireStrip fires={fires.data ?? []} />
          <FireLegend />
          <Fires fires={fires.data ?? []} />
        </section>
      </div>
      <Suspense>
        {isDeleting && (
          <ConfirmDialog
            title={`Delete ${data.name}?`}
            action="Delete the schedule"
            run={async () => {
              await client.deleteSchedule({ params });
              await queries.invalidateQueries({ queryKey: ['schedules', team.uid] });
              await navigate({ to: '/schedules' });
            }}
            close={() => setDeleting(false)}
          >
            It fires no more. Runs that it has started stay.
          </ConfirmDialog>
        )}
      </Suspense>
    </Page>
  );
}

function Fires({ fires }: { fires: readonly ScheduleFire[] }) {
  if (fires.length === 0) return <p className="dim">It has not fired yet.</p>;
  return (
    <div className="card">
      <table className="tbl in-card">
        <thead>
          <tr>
            <th className="w180">Time</th>
            <th className="w108">Outcome</th>
            <th>Run or reason</th>
          </tr>
        </thead>
        <tbody>
          {fires.map((fire) => (
            <tr key={fire.id}>
              <td>
                <Ago time={fire.due_at ?? fire.fired_at} />
                {fire.due_at === undefined && <span className="dim"> by hand</span>}
              </td>
              <td className={fire.outcome === 'failed' ? 'badc' : ''}>{fire.outcome}</td>
              <td>
                {fire.run_id ? (
                  <Link className="link mono" to="/runs/$runId" params={{ runId: fire.run_id }}>
                    {fire.run_id.slice(0, 8)}
                  </Link>
                ) : (
                  visibleText(fire.reason ?? '')
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
