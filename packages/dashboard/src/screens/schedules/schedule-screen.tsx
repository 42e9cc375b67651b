import type { ScheduledAgentItem, ScheduleFire } from '@runyard/contract/schedules/schedules';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useRead } from '../../api/read.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Crumb } from '../../frame/crumb.tsx';
import { DetailPage } from '../../frame/detail-page.tsx';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Content, Fact, Facts, Note, P, Quote, Row, Stack, Text, TextLink } from '../../parts/blocks.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { Icon } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { MoreMenu } from '../../parts/more-menu.tsx';
import { useOptimistic } from '../../parts/optimistic.ts';
import { Problem } from '../../parts/problem.tsx';
import { AskButton } from '../../parts/question.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Ago } from '../../parts/time.tsx';
import { CronWords } from './cron-words.tsx';
import { FireLegend, FireStrip } from './fire-strip.tsx';
import { NextTimes } from './next-times.tsx';
import { ScheduleForm } from './schedule-form.tsx';
import { switchOf } from './switch.ts';
import { WhyPaused } from './why-paused.tsx';

const route = getRouteApi('/shell/schedules/$scheduleId');

const crumbs = <Crumb to="/schedules">Schedules</Crumb>;

/** Shows one schedule: the next times at which it is due, the outcomes of the last times, and its prompt. */
export function ScheduleScreen() {
  const { scheduleId } = route.useParams();
  const schedule = useRead(['schedule', scheduleId], (client) => client.getSchedule({ params: { scheduleId } }));
  return (
    <DetailPage what="schedule" crumbs={crumbs} query={schedule}>
      {(data) => <SchedulePage key={scheduleId} schedule={data} />}
    </DetailPage>
  );
}

function SchedulePage({ schedule }: { schedule: ScheduledAgentItem }) {
  const scheduleId = schedule.id;
  const params = { scheduleId };
  const isEditing = oneOf(route.useSearch({ select: (search) => search.edit })) !== undefined;
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const may = useMay('member');
  const navigate = useNavigate();
  const { error, toggle, runNow } = useActs(schedule);
  const fires = useRead(
    ['schedule', scheduleId, 'fires'],
    async (client) => (await client.listScheduleFires({ params, query: { limit: 30 } })).fires,
  );
  const edit = (isOpen: boolean) =>
    void navigate({ to: '/schedules/$scheduleId', params, search: isOpen ? { edit: 'true' } : {} });
  useKeys([{ key: 'e', does: 'Edit the schedule', run: () => may && edit(true) }]);
  return (
    <Page
      title={schedule.name}
      crumbs={crumbs}
      actions={
        <>
          <RoleButton needs="member" run={() => void runNow()}>
            <Icon name="play" small />
            Run now
          </RoleButton>
          <RoleButton needs="member" run={() => void toggle()}>
            <Icon name={schedule.enabled ? 'pause' : 'play'} small />
            {schedule.enabled ? 'Pause' : 'Resume'}
          </RoleButton>
          <RoleButton needs="member" run={() => edit(!isEditing)}>
            Edit <kbd>E</kbd>
          </RoleButton>
          <AskButton
            needs="member"
            kind="danger"
            question={{
              title: `Delete ${schedule.name}?`,
              text: 'It fires no more. Runs that it has started stay.',
              action: 'Delete the schedule',
              run: async () => {
                await client.deleteSchedule({ params });
                await queries.invalidateQueries({ queryKey: ['schedules', team.uid] });
                await navigate({ to: '/schedules' });
              },
            }}
          >
            Delete…
          </AskButton>
          <MoreMenu path={`/agent/schedules/${scheduleId}`} />
        </>
      }
    >
      <Content>
        <Problem error={error} />
        {isEditing && <ScheduleForm schedule={schedule} close={() => edit(false)} />}
        {schedule.last_spawn_error && (
          <Note tone="bad">
            <Icon name="warn" />
            <span>{visibleText(schedule.last_spawn_error)}</span>
          </Note>
        )}
        <ScheduleFacts schedule={schedule} fires={fires.data ?? []} />
        <Stack as="section" gap={2}>
          <h2>Prompt</h2>
          <Quote>
            <Markdown text={schedule.prompt} />
          </Quote>
        </Stack>
        <Stack as="section" gap={2}>
          <Row as="h2">
            Last times
            <TextLink small right to="/runs" search={{ schedule_id: scheduleId }}>
              All its runs
            </TextLink>
          </Row>
          <Problem error={fires.error} />
          <FireStrip fires={fires.data ?? []} />
          <FireLegend />
          <Fires fires={fires.data ?? []} />
        </Stack>
      </Content>
    </Page>
  );
}

/** Returns functions that pause or resume the schedule, and that start a run of it now. */
function useActs(schedule: ScheduledAgentItem) {
  const client = useClient();
  const { team } = useSession();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const { error, attempt } = useAttempts();
  const switched = useOptimistic();
  const toggle = () =>
    switched.change<ScheduledAgentItem, boolean>({
      ...switchOf(client, schedule),
      queryKey: ['schedule', schedule.id],
      alsoReads: [['schedules', team.uid]],
      put: (before, enabled) => ({ ...before, enabled }),
    });
  const runNow = async () => {
    await attempt(async () => {
      const started = await client.runSchedule({ params: { scheduleId: schedule.id } });
      if ('run_id' in started && typeof started.run_id === 'string')
        await navigate({ to: '/runs/$runId', params: { runId: started.run_id } });
    });
    await queries.invalidateQueries({ queryKey: ['schedule', schedule.id] });
    await queries.invalidateQueries({ queryKey: ['schedules', team.uid] });
  };
  return { error: error ?? switched.error, toggle, runNow };
}

function ScheduleFacts({ schedule, fires }: { schedule: ScheduledAgentItem; fires: readonly ScheduleFire[] }) {
  const { model_id: model, environment_id: environment } = schedule.agent_config ?? {};
  const { executor } = schedule;
  return (
    <Facts far>
      <Fact name="Fires">
        <CronWords cron={schedule.cron_schedule} timezone={schedule.timezone} />{' '}
        <Text as="code" tone="dim">
          {schedule.cron_schedule}
        </Text>
      </Fact>
      <Fact name="Next times">
        {schedule.enabled ? (
          <NextTimes times={schedule.upcoming_runs ?? []} timezone={schedule.timezone ?? 'UTC'} />
        ) : (
          <WhyPaused schedule={schedule} fires={fires} />
        )}
      </Fact>
      <Fact name="While a run is live">{(schedule.overlap ?? 'allow').replaceAll('_', ' ')}</Fact>
      <Fact name="Runs act as">{executor && visibleText(executor.display_name ?? executor.uid)}</Fact>
      <Fact name="Model">{model && <code>{model}</code>}</Fact>
      <Fact name="Environment">
        {environment && (
          <TextLink to="/environments/$uid" params={{ uid: environment }}>
            {visibleText(schedule.environment?.name ?? environment)}
          </TextLink>
        )}
      </Fact>
    </Facts>
  );
}

function Fires({ fires }: { fires: readonly ScheduleFire[] }) {
  if (fires.length === 0) return <P tone="dim">It has not fired yet.</P>;
  return (
    <DataTable
      items={fires}
      keyOf={({ id }) => id}
      columns={(column) => [
        column('Time', { width: 180 }, FireTime),
        column(
          'Outcome',
          { width: 108, look: ({ outcome }) => ({ tone: outcome === 'failed' ? 'bad' : undefined }) },
          ({ outcome }) => outcome,
        ),
        column('Run or reason', {}, RunOrReason),
      ]}
    />
  );
}

const FireTime = ({ due_at: due, fired_at: fired }: ScheduleFire) => (
  <>
    <Ago time={due ?? fired} />
    {due === undefined && <Text tone="dim"> by hand</Text>}
  </>
);

const RunOrReason = ({ run_id: runId, reason = '' }: ScheduleFire) =>
  runId ? (
    <TextLink mono to="/runs/$runId" params={{ runId }}>
      {runId.slice(0, 8)}
    </TextLink>
  ) : (
    visibleText(reason)
  );
