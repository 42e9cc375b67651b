import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { visible, visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useClient, useMay } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { Fact } from '../../parts/fact.tsx';
import { costText, countText, dollarText, numberText } from '../../parts/format.ts';
import { Icon, StateBadge } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Person } from '../../parts/person.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/time.tsx';
import { Artifacts } from './artifacts.tsx';
import { Denied, Pushes } from './network.tsx';
import { Sandbox } from './sandbox.tsx';
import { SetupSteps, setupSteps } from './why.tsx';
import { Workspace } from './workspace.tsx';

/** Shows the facts of a run beside its conversation. Facts without a value are not shown. */
export function Facts({
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
      <div className="sec">
        <dl className="kv">
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
              <Link className="link" to="/schedules/$scheduleId" params={{ scheduleId: run.schedule.schedule_id }}>
                {visibleText(run.schedule.schedule_name)}
              </Link>
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
                    <span className="waitc small">{`instead of ${requested}`}</span>
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
                {visibleText(text)}{' '}
                <span className="dim small">{enforcer ? `enforced by the ${enforcer}` : 'advice'}</span>
              </div>
            ))}
          </Fact>
          <Fact name="After a turn">{config?.idle_timeout_minutes !== undefined && idleText(config)}</Fact>
          <Fact name="Environment">
            {config?.environment_id && (
              <Link className="link" to="/environments/$uid" params={{ uid: config.environment_id }}>
                <EnvironmentName uid={config.environment_id} />
              </Link>
            )}
          </Fact>
          <Fact name="Parent run">
            {run.parent_run_id && (
              <Link className="link" to="/runs/$runId" params={{ runId: run.parent_run_id }}>
                {run.parent_run_id.slice(0, 8)}
              </Link>
            )}
          </Fact>
          <Fact name="Page">
            {run.trigger_url && /^https?:\/\//i.test(run.trigger_url) && (
              <a className="link" href={run.trigger_url} target="_blank" rel="noreferrer noopener">
                {URL.parse(run.trigger_url)?.host}
              </a>
            )}
          </Fact>
        </dl>
      </div>
      <Cost run={run} />
      <Artifacts run={run} />
      <Workspace run={run} />
      <Withheld run={run} refresh={refresh} />
      <Denied events={events} run={run} />
      <Pushes events={events} />
      {run.dropped_output && (
        <div className="sec">
          <h2>Not stored</h2>
          <p className="hint">
            {`${countText(run.dropped_output.events, 'event')} and ${countText(run.dropped_output.transcript_lines, 'line')} of the transcript, because the run reached its limits.`}
          </p>
        </div>
      )}
      <div className="sec">
        <dl className="kv">
          <Fact name="Run">
            <span className="row">
              <span className="mono cut grow">{run.run_id}</span>
              <CopyButton text={run.run_id} what="Copy run id" />
            </span>
          </Fact>
          <Fact name="Created">
            <Ago time={run.created_at} />
          </Fact>
          <Fact name="Metadata">
            {Object.keys(run.metadata ?? {}).length > 0 && (
              <span className="mono">
                {Object.entries(run.metadata ?? {}).map(([name, value]) => (
                  <span key={name} className="row">{`${visibleText(name)} ${visibleText(value)}`}</span>
                ))}
              </span>
            )}
          </Fact>
        </dl>
        {run.started_at !== null && steps.length > 0 && (
          <details>
            <summary className="dim small">Setup</summary>
            <SetupSteps steps={steps} />
          </details>
        )}
        <details>
          <summary className="dim small">Configuration</summary>
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
  const client = useClient();
  const { data } = useQuery({
    queryKey: ['environment', uid],
    queryFn: async () => await client.getEnvironment({ params: { uid } }),
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

function Cost({ run }: { run: RunItem }) {
  const usage = run.request_usage;
  const usd = usage?.inference_cost_usd;
  const limit = run.agent_config?.max_cost_usd;
  const parts = usage?.inference_cost_breakdown_usd;
  const rows: readonly (readonly [string, number | undefined])[] = parts
    ? [
        ['Read', parts.input_cost_usd],
        ['From cache', parts.input_cache_read_cost_usd],
        ['To cache', parts.input_cache_write_cost_usd],
        ['Written', parts.output_cost_usd],
        ["Provider's tools", parts.provider_tools_cost_usd],
      ]
    : [];
  return (
    <div className="sec">
      <h2>Cost {limit !== undefined && <span className="n right">{`of the limit of ${dollarText(limit)}`}</span>}</h2>
      {usage === undefined ? (
        <p className="mut">No model was asked.</p>
      ) : (
        <>
          <div className="row">
            <span className="b">{costText(usage)}</span>
            {limit !== undefined && usd !== undefined && limit > 0 && (
              <>
                <svg
                  className="meter grow"
                  viewBox="0 0 100 6"
                  preserveAspectRatio="none"
                  role="img"
                  aria-label={`${Math.round((usd / limit) * 100)} percent of the limit`}
                >
                  <rect width={Math.min(100, (usd / limit) * 100)} height="6" className="f-ink2" />
                </svg>
                <span className="dim">{`${Math.round((usd / limit) * 100)}%`}</span>
              </>
            )}
            {usage.total_tokens !== undefined && (
              <span className="dim right">{`${numberText(usage.total_tokens)} tokens`}</span>
            )}
          </div>
          {rows.length > 0 && (
            <table className="tok">
              <tbody>
                {rows.map(
                  ([name, value]) =>
                    value !== undefined && (
                      <tr key={name}>
                        <td>{name}</td>
                        <td>{dollarText(value)}</td>
                      </tr>
                    ),
                )}
              </tbody>
            </table>
          )}
        </>
      )}
    </div>
  );
}

/** Shows the texts of others that ran in the sandbox of the run, and a button that accepts them. */
function AcceptConversation({ run, refresh }: { run: RunItem; refresh: () => Promise<void> }) {
  const client = useClient();
  const { error, attempt, isBusy } = useAttempts();
  const uid = run.conversation_id ?? '';
  const { data: waiting, refetch } = useQuery({
    queryKey: ['acceptances', 'conversation', uid],
    queryFn: async () => (await client.listAcceptances({ query: { kind: 'conversation', uid } })).waiting[0] ?? null,
  });
  if (!waiting) return null;
  const accept = async () => {
    const { kind, revision } = waiting;
    await attempt(async () => await client.accept({ body: { kind, uid, revision } }));
    await refetch();
    await refresh();
  };
  return (
    <div className="stack s2">
      <ul className="files small">
        {waiting.difference?.map(({ path, after }) => (
          <li key={path}>
            <span className="whole-value">{visible(String(after))}</span>
          </li>
        ))}
      </ul>
      <Problem error={error} />
      <div className="row">
        <button type="button" className="btn sm" disabled={isBusy} onClick={() => void accept()}>
          Accept these texts
        </button>
        <span className="hint">Or begin anew: rerun the run, or send a message that begins anew.</span>
      </div>
    </div>
  );
}

function Withheld({ run, refresh }: { run: RunItem; refresh: () => Promise<void> }) {
  const may = useMay('member');
  const withheld = run.withheld ?? [];
  if (withheld.length === 0) return null;
  return (
    <div className="sec">
      <h2>
        Withheld rights <span className="n">{withheld.length}</span>
      </h2>
      <ul className="files small">
        {withheld.map(({ reason }, index) => (
          <li key={index}>
            <Icon name="lock" small />
            <span>{visibleText(reason)}</span>
          </li>
        ))}
      </ul>
      {may && hasForeignTexts(run) && <AcceptConversation run={run} refresh={refresh} />}
      <p className="hint">
        The run executes texts of others whom its executor has not accepted.{' '}
        <Link className="link" to="/needs-answer" search={{ tab: 'acceptances' }}>
          Read and accept them
        </Link>
      </p>
    </div>
  );
}
