import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { visible, visibleText } from '@runyard/contract/wire/visible';
import { lazy, Suspense } from 'react';
import { useRead } from '../../api/read.ts';
import { useClient, useMay } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Count, Fact, Facts, Hint, Row, Stack, Text, TextLink } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { CopyButton } from '../../parts/copy.tsx';
import { countText, dollarText } from '../../parts/format.ts';
import { Icon, StateBadge } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Person } from '../../parts/person.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/time.tsx';
import { Artifacts } from './artifacts.tsx';
import { Cost } from './cost.tsx';
import styles from './facts.module.css';
import { Denied, GithubAnswers, Pushes } from './network.tsx';
import { Sandbox } from './sandbox.tsx';
import { SetupSteps, setupSteps } from './why.tsx';
import { Workspace } from './workspace.tsx';

const RunChecks = lazy(async () => ({ default: (await import('./checks.tsx')).RunChecks }));
const History = lazy(async () => ({ default: (await import('./history.tsx')).History }));
const PullRequest = lazy(async () => ({ default: (await import('./pull-request.tsx')).PullRequest }));
const Result = lazy(async () => ({ default: (await import('./result.tsx')).Result }));

const RunLink = ({ runId }: { runId: string }) => (
  <TextLink to="/runs/$runId" params={{ runId }}>
    {runId.slice(0, 8)}
  </TextLink>
);

/** Shows the facts of a run beside its conversation. Facts without a value are not shown. */
export function RunFacts({
  run,
  events,
  refresh,
}: {
  run: RunItem;
  events: readonly TimelineEvent[];
  refresh: () => Promise<void>;
}) {
  const config = run.agent_config;
  const started = lastOf(events, 'agent_started');
  const ready = lastOf(events, 'worker_container_ready');
  const requested = config?.model_id;
  const steps = setupSteps(events);
  return (
    <>
      <div className={styles.section}>
        <Facts>
          <Fact name="State">
            <StateBadge state={run.state} />
          </Fact>
          <Fact name="Why">
            {!['BLOCKED', 'FAILED', 'ERROR'].includes(run.state) &&
              run.status_message &&
              visibleText(run.status_message.message)}
          </Fact>
          <Fact name="Retryable">
            {run.status_message?.retryable === undefined ? undefined : run.status_message.retryable ? 'yes' : 'no'}
          </Fact>
          <Fact name="Created by">{run.creator && <Person profile={run.creator} />}</Fact>
          <Fact name="Acts as">
            {run.executor && run.executor.uid !== run.creator?.uid && <Person profile={run.executor} />}
          </Fact>
          <Fact name="Started by">
            {run.schedule ? (
              <TextLink to="/schedules/$scheduleId" params={{ scheduleId: run.schedule.schedule_id }}>
                {visibleText(run.schedule.schedule_name)}
              </TextLink>
            ) : (
              run.source?.toLowerCase().replaceAll('_', ' ')
            )}
          </Fact>
          <Fact name="Model">
            {(run.model_id ?? requested) && (
              <>
                <code>{run.model_id ?? requested}</code>
                {requested && run.model_id && requested !== run.model_id && (
                  <>
                    <br />
                    <Text tone="wait" small>{`instead of ${requested}`}</Text>
                  </>
                )}
              </>
            )}
          </Fact>
          <Fact name="Harness">{textMember(started, 'harness') ?? config?.harness?.type}</Fact>
          <Fact name="Sandbox">{ready && <Sandbox event={ready} />}</Fact>
          <Fact name="Limits">{config && limitsOf(config)}</Fact>
          <Fact name={config?.approval_policy === 'auto-deny' ? 'Denies' : 'Asks before'}>
            {run.approvals?.map(({ text, enforced_by: enforcer }) => (
              <div key={text}>
                {visibleText(text)} <Hint>{enforcer ? `enforced by the ${enforcer}` : 'advice'}</Hint>
              </div>
            ))}
          </Fact>
          <Fact name="After a turn">{config?.idle_timeout_minutes !== undefined && idleText(config)}</Fact>
          <Fact name="Environment">
            {config?.environment_id && (
              <TextLink to="/environments/$uid" params={{ uid: config.environment_id }}>
                <EnvironmentName uid={config.environment_id} />
              </TextLink>
            )}
          </Fact>
          <Fact name="Parent run">{run.parent_run_id && <RunLink runId={run.parent_run_id} />}</Fact>
          <Fact name="Retry of">{run.retry_of && <RunLink runId={run.retry_of} />}</Fact>
          <Fact name="Rerun of">{run.rerun_of && <RunLink runId={run.rerun_of} />}</Fact>
          <Fact name="Page">
            {run.trigger_url && /^https?:\/\//i.test(run.trigger_url) && (
              <Text as="a" link href={run.trigger_url} target="_blank" rel="noreferrer noopener">
                {URL.parse(run.trigger_url)?.host}
              </Text>
            )}
          </Fact>
        </Facts>
      </div>
      {('result' in run || run.result_artifact_uid !== undefined) && (
        <Suspense>
          <Result run={run} />
        </Suspense>
      )}
      {lastOf(events, 'check_started') && (
        <Suspense>
          <RunChecks events={events} />
        </Suspense>
      )}
      {events.some(({ event_type: type, payload }) => payload?.by !== undefined || type === 'execution_retried') && (
        <Suspense>
          <History events={events} />
        </Suspense>
      )}
      <Cost run={run} />
      <Artifacts run={run} />
      <Suspense>
        {run.artifacts?.map(
          (artifact, index) =>
            artifact.artifact_type === 'PULL_REQUEST' && <PullRequest key={index} artifact={artifact} />,
        )}
      </Suspense>
      <Workspace run={run} />
      <Withheld run={run} refresh={refresh} />
      <Denied events={events} run={run} />
      <Pushes events={events} />
      <GithubAnswers events={events} />
      {run.dropped_output && (
        <div className={styles.section}>
          <h2>Not stored</h2>
          <Hint as="p">
            {`${countText(run.dropped_output.events, 'event')} and ${countText(run.dropped_output.transcript_lines, 'line')} of the transcript, because the run reached its limits.`}
          </Hint>
        </div>
      )}
      <div className={styles.section}>
        <Facts>
          <Fact name="Run">
            <Row as="span">
              <Text mono cut grow>
                {run.run_id}
              </Text>
              <CopyButton text={run.run_id} what="Copy run id" />
            </Row>
          </Fact>
          <Fact name="Created">
            <Ago time={run.created_at} />
          </Fact>
          <Fact name="Metadata">
            {Object.keys(run.metadata ?? {}).length > 0 && (
              <Text mono>
                {Object.entries(run.metadata ?? {}).map(([name, value]) => (
                  <Row key={name} as="span">{`${visibleText(name)} ${visibleText(value)}`}</Row>
                ))}
              </Text>
            )}
          </Fact>
        </Facts>
        {run.started_at !== null && steps.length > 0 && (
          <details>
            <Text as="summary" tone="dim" small>
              Setup
            </Text>
            <SetupSteps steps={steps} />
          </details>
        )}
        <details>
          <Text as="summary" tone="dim" small>
            Configuration
          </Text>
          <JsonView value={config ?? {}} />
        </details>
      </div>
    </>
  );
}

/** Returns whether rights are withheld from the run because of texts of others that ran in its sandbox. */
export const hasForeignTexts = ({ withheld = [] }: RunItem): boolean =>
  withheld.some(({ content }) => content?.kind === 'conversation');

/** Returns the limits that the request set for the run: `at most $5.00, 30 minutes, 20 turns`. Empty: it set none. */
export function limitsOf({
  max_cost_usd: usd,
  max_duration_minutes: minutes,
  max_turns: turns,
}: NonNullable<RunItem['agent_config']>): string {
  const limits = [
    usd === undefined ? '' : dollarText(usd),
    minutes === undefined ? '' : countText(minutes, 'minute'),
    turns === undefined ? '' : countText(turns, 'turn'),
  ].filter(Boolean);
  return limits.length === 0 ? '' : `at most ${limits.join(', ')}`;
}

const idleText = ({ idle_timeout_minutes: minutes = 0 }: NonNullable<RunItem['agent_config']>): string =>
  minutes === 0 ? 'the sandbox ends at once' : `the sandbox waits ${countText(minutes, 'minute')} for a message`;

function EnvironmentName({ uid }: { uid: string }) {
  const { data } = useRead(['environment', uid], (client) => client.getEnvironment({ params: { uid } }), {
    staleTime: 60_000,
    retry: false,
  });
  return <>{visibleText(data?.config.name ?? uid)}</>;
}

function lastOf(events: readonly TimelineEvent[], type: TimelineEvent['event_type']): TimelineEvent | undefined {
  return events.findLast((event) => event.event_type === type);
}

function textMember(event: TimelineEvent | undefined, name: string): string | undefined {
  const value = event?.payload?.[name];
  return typeof value === 'string' ? value : undefined;
}

/** Shows the texts of others that ran in the sandbox of the run, and a button that accepts them. */
function AcceptConversation({ run, refresh }: { run: RunItem; refresh: () => Promise<void> }) {
  const client = useClient();
  const { error, attempt, isBusy } = useAttempts();
  const uid = run.conversation_id ?? '';
  const { data: waiting, refetch } = useRead(
    ['acceptances', 'conversation', uid],
    async (client) => (await client.listAcceptances({ query: { kind: 'conversation', uid } })).waiting[0] ?? null,
  );
  if (!waiting) return null;
  const accept = async () => {
    const { kind, revision } = waiting;
    await attempt(async () => await client.accept({ body: { kind, uid, revision } }));
    await refetch();
    await refresh();
  };
  return (
    <Stack gap={2}>
      <Text as="ul" small className={styles.files}>
        {waiting.difference?.map(({ path, after }) => (
          <li key={path}>
            <Text whole>{visible(String(after))}</Text>
          </li>
        ))}
      </Text>
      <Problem error={error} />
      <Row>
        <Button small disabled={isBusy} onClick={() => void accept()}>
          Accept these texts
        </Button>
        <Hint>Or begin anew: rerun the run, or send a message that begins anew.</Hint>
      </Row>
    </Stack>
  );
}

function Withheld({ run, refresh }: { run: RunItem; refresh: () => Promise<void> }) {
  const may = useMay('member');
  const withheld = run.withheld ?? [];
  if (withheld.length === 0) return null;
  return (
    <div className={styles.section}>
      <h2>
        Withheld rights <Count>{withheld.length}</Count>
      </h2>
      <Text as="ul" small className={styles.files}>
        {withheld.map(({ reason }, index) => (
          <li key={index}>
            <Icon name="lock" small />
            <span>{visibleText(reason)}</span>
          </li>
        ))}
      </Text>
      {may && hasForeignTexts(run) && <AcceptConversation run={run} refresh={refresh} />}
      <Hint as="p">
        The run executes texts of others whom its executor has not accepted.{' '}
        <TextLink to="/inbox" search={{ tab: 'acceptances' }}>
          Read and accept them
        </TextLink>
      </Hint>
    </div>
  );
}
