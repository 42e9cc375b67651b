import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { visibleText } from '@runyard/contract/wire/visible';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { noteRun, useNeighbour } from '../../api/run-place.ts';
import { Crumb } from '../../frame/crumb.tsx';
import { NotFound } from '../../frame/not-found.tsx';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Hint, Pad, Row, Text } from '../../parts/blocks.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { costText, durationText } from '../../parts/format.ts';
import { StateBadge } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { Live } from '../../parts/live.tsx';
import { Problem } from '../../parts/problem.tsx';
import { QueryTabs } from '../../parts/query-tabs.tsx';
import { Ago } from '../../parts/time.tsx';
import { showToast } from '../../parts/toast.tsx';
import type { RunAction } from './actions.tsx';
import { Approval } from './approval.tsx';
import { ChildRuns, useChildRuns } from './child-runs.tsx';
import { Composer, type Draft } from './composer.tsx';
import { Conversation } from './conversation.tsx';
import { callerOf } from './entry.ts';
import { RunFacts } from './facts.tsx';
import styles from './run.module.css';
import { TimelineBar } from './timeline-bar.tsx';
import { Toolbar } from './toolbar.tsx';
import { type FollowedRun, useRun } from './use-run.ts';
import { Setup, setupSteps, Why } from './why.tsx';
import { Workspace } from './workspace.tsx';

const ActionDialog = lazy(async () => ({ default: (await import('./actions.tsx')).ActionDialog }));
const Outline = lazy(async () => ({ default: (await import('./outline.tsx')).Outline }));
const Changes = lazy(async () => ({ default: (await import('./changes/changes.tsx')).Changes }));

const route = getRouteApi('/shell/runs/$runId');

/** Shows one run: its work, its questions, its cost and its results. */
export function RunScreen() {
  const { runId } = route.useParams();
  // Create a new component for each run, so that the page of a run does not show state of the run that was open before.
  return <OneRun key={runId} runId={runId} />;
}

function OneRun({ runId }: { runId: string }) {
  const followed = useRun(runId);
  const { run, error } = followed;
  useListKeys(runId);
  if (statusOf(error) === 404 || statusOf(error) === 400)
    return (
      <Page title="Run" crumbs={crumbs}>
        <NotFound what="run" />
      </Page>
    );
  if (run === undefined)
    return (
      <Page title="Run" crumbs={crumbs}>
        {error ? (
          <Pad>
            <Problem error={error} onRetry={() => void followed.refresh()} />
          </Pad>
        ) : (
          <SkeletonRows />
        )}
      </Page>
    );
  return <Loaded followed={followed} run={run} />;
}

/**
 * Registers keys that open the older or newer run of the list from which the person came. The new address replaces the current one in the
 * history, so that Back still returns to the list.
 */
function useListKeys(runId: string): void {
  const navigate = useNavigate();
  const neighbour = useNeighbour(runId);
  useEffect(() => noteRun(runId), [runId]);
  const go = (which: 'older' | 'newer') => () => {
    const next = neighbour(which);
    if (next !== undefined) void navigate({ to: '/runs/$runId', params: { runId: next }, replace: true });
    else showToast(`The list of runs has no ${which} run loaded.`);
  };
  useKeys([
    { key: '[', does: 'Older run of the list', run: go('older') },
    { key: ']', does: 'Newer run of the list', run: go('newer') },
  ]);
}

const crumbs = <Crumb to="/runs">Runs</Crumb>;

/** Returns a short text that explains the state of this run. */
function stateNote(run: RunItem, events: readonly TimelineEvent[]): string {
  const caller = callerOf(events.findLast(({ event_type: type }) => type === 'oz_run_cancelled'));
  if (run.state === 'CANCELLED' && caller !== undefined) return `by ${caller}`;
  if (run.state === 'BLOCKED') return 'Waits for an answer';
  // The conversation of a failed run begins with the reason.
  if (run.state === 'FAILED' || run.state === 'ERROR') return run.started_at === null ? 'before its agent began' : '';
  return run.status_message?.message ?? '';
}

function Loaded({ followed, run }: { followed: FollowedRun; run: RunItem }) {
  const { timeline, status, refresh } = followed;
  const search = route.useSearch();
  const tab = oneOf(search.tab) ?? 'conversation';
  const [action, setAction] = useState<RunAction | undefined>();
  const { error, attempt } = useAttempts();
  const [draft, setDraft] = useState<Draft | undefined>();
  const children = useChildRuns(run);
  const hasEnded = isTerminal(run.state);
  const steps = setupSteps(timeline);
  const facts = <RunFacts run={run} events={timeline} refresh={refresh} />;
  const write = () => document.getElementById('message')?.focus();

  useAnnouncedState(run);

  return (
    <Page
      title={run.run_id.slice(0, 8)}
      tab={run.title}
      crumbs={crumbs}
      actions={<Toolbar run={run} attempt={attempt} refresh={refresh} open={setAction} />}
    >
      <div className={styles.screen}>
        <div className={styles.conversation}>
          <div>
            <div className={styles.runHead}>
              <Row wrap>
                <StateBadge state={run.state} large />
                <Text tone="muted">{visibleText(stateNote(run, timeline))}</Text>
                {hasEnded ? (
                  <Hint right>
                    ended <Ago time={run.finished_at} isPast />
                  </Hint>
                ) : (
                  <Text right>
                    <Live status={status} />
                  </Text>
                )}
              </Row>
              <h1>{visibleText(run.title)}</h1>
              <TimelineBar run={run} events={timeline} />
              <Problem error={error} />
            </div>
            <Strip run={run} facts={facts} />
            <QueryTabs
              label="Views of the run"
              tabs={[
                { name: 'Conversation', search: { ...search, tab: undefined }, isCurrent: tab === 'conversation' },
                { name: 'Files changed', search: { ...search, tab: 'files' }, isCurrent: tab === 'files' },
              ]}
            />
          </div>
          {tab === 'files' ? (
            <Suspense fallback={<SkeletonRows />}>
              <Changes
                run={run}
                files={<Workspace run={run} isViewed />}
                comment={(text) => {
                  setDraft({ text });
                  showToast('The comment is in your message.');
                }}
              />
            </Suspense>
          ) : (
            <Conversation followed={followed} run={run}>
              {(run.state === 'FAILED' || run.state === 'ERROR') && (
                <Why run={run} events={timeline} rerun={() => setAction('rerun')} write={write} />
              )}
              {!hasEnded && run.started_at === null && steps.length > 0 && <Setup steps={steps} />}
              <ChildRuns runs={children} parentId={run.run_id} />
            </Conversation>
          )}
          <div className={styles.dock} data-part="dock">
            <div>
              {run.blocked_on && (
                <Approval key={run.blocked_on.request_id} run={run} asked={run.blocked_on} refresh={refresh} />
              )}
              <Composer run={run} draft={draft} refresh={refresh} />
            </div>
          </div>
        </div>
        <aside className={styles.panel} aria-label="About this run">
          <Suspense>{tab !== 'files' && <Outline run={run} />}</Suspense>
          {facts}
        </aside>
      </div>
      <Suspense>
        {action && (
          <ActionDialog
            action={action}
            run={run}
            liveBelow={children.filter(({ state }) => !isTerminal(state)).length}
            close={() => setAction(undefined)}
            refresh={refresh}
          />
        )}
      </Suspense>
      <Text spoken role="status" id="run-state" />
    </Page>
  );
}

/** Announces new states and questions of the run to people who use a screen reader. */
function useAnnouncedState(run: RunItem): void {
  const words =
    run.state === 'BLOCKED'
      ? `The agent asks: ${run.blocked_on?.title ?? ''}`
      : `The run is ${run.state}. ${run.status_message?.message ?? ''}`;
  useEffect(() => {
    const place = document.getElementById('run-state');
    if (place) place.textContent = visibleText(words);
  }, [words]);
}

/** Shows the most important facts on pages that are too narrow for the panel with all facts. A click opens all `facts`. */
function Strip({ run, facts }: { run: RunItem; facts: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  const time =
    run.finished_at && run.started_at
      ? durationText(Date.parse(run.finished_at) - Date.parse(run.started_at))
      : undefined;
  return (
    <details className={styles.detailsStrip} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary className={styles.fx} title="All facts about this run">
        <div>
          <Hint>Cost</Hint>
          <Text bold>{costText(run.request_usage)}</Text>
        </div>
        <div>
          <Hint>Model</Hint>
          <Text cut>{(run.model_id ?? '').split('/').at(-1)}</Text>
        </div>
        <div>
          <Hint>Artifacts</Hint>
          <Text bold>{run.artifacts?.length ?? 0}</Text>
        </div>
        <div>
          <Hint>Time</Hint>
          <span>{time ?? <Ago time={run.created_at} />}</span>
        </div>
      </summary>
      {isOpen && <Pad>{facts}</Pad>}
    </details>
  );
}
