/** The columns of the list of runs. */

import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import type { ReactNode } from 'react';
import { keep, readKept } from '../../api/kept.ts';
import { dollarText } from '../../parts/format.ts';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { Ago, Lasting } from '../../parts/time.tsx';

export interface Column {
  readonly name: string;
  readonly label: string;
  readonly className: string;
  readonly headClassName: string;
  /** False: the column is shown only if the reader chooses it. */
  readonly isDefault: boolean;
  readonly cell: (run: RunItem) => ReactNode;
}

const startIcons: Partial<Record<NonNullable<RunItem['source']>, IconName>> = {
  SCHEDULED_AGENT: 'clock',
  WEBHOOK: 'hook',
  GITHUB_WEBHOOK: 'hook',
  GITLAB_WEBHOOK: 'hook',
  ORCHESTRATION: 'child',
  WEB_APP: 'play',
  MCP: 'link',
};

/** Returns the name of the person, schedule, automation or agent that started a run. */
export function starterOf(run: RunItem): string {
  return run.automation?.name ?? run.schedule?.schedule_name ?? run.creator?.display_name ?? run.creator?.uid ?? '';
}

/** The columns to the right of state and title, from left to right. */
export const columns: readonly Column[] = [
  {
    name: 'started_by',
    label: 'Started by',
    className: 'm0',
    headClassName: 'w180',
    isDefault: true,
    cell: (run) => (
      <span className="row" title={run.source}>
        <Icon name={startIcons[run.source ?? 'API'] ?? 'term'} small className="dim" />
        <span className="cut">{visibleText(starterOf(run))}</span>
      </span>
    ),
  },
  {
    name: 'model',
    label: 'Model',
    className: 'm0 dim hide-l',
    headClassName: 'w140 hide-l',
    isDefault: true,
    cell: (run) => visibleText(run.model_id?.split('/').at(-1) ?? ''),
  },
  {
    name: 'environment',
    label: 'Environment',
    className: 'm0 dim hide-l',
    headClassName: 'w140 hide-l',
    isDefault: false,
    cell: (run) => visibleText(run.environment?.name ?? run.environment?.environment_id ?? ''),
  },
  {
    name: 'harness',
    label: 'Harness',
    className: 'm0 dim hide-l',
    headClassName: 'w92 hide-l',
    isDefault: false,
    cell: (run) => run.harness,
  },
  {
    name: 'time',
    label: 'Time',
    className: 'num m0',
    headClassName: 'num w92',
    isDefault: true,
    cell: (run) =>
      run.started_at && (
        <Lasting from={run.started_at} to={run.finished_at ?? (isTerminal(run.state) ? run.updated_at : undefined)} />
      ),
  },
  {
    name: 'cost',
    label: 'Cost',
    className: 'num m0',
    headClassName: 'num w72',
    isDefault: true,
    cell: (run) => {
      const usd = run.request_usage?.inference_cost_usd;
      if (usd !== undefined) return dollarText(usd);
      return run.request_usage === undefined ? '' : <span title="A request was not priced">not known</span>;
    },
  },
];

const storageKey = 'columns';

/** Returns the names of the columns that this browser shows. */
export function readColumns(): readonly string[] {
  return readKept(storageKey)?.split(',') ?? columns.filter(({ isDefault }) => isDefault).map(({ name }) => name);
}

/** Stores the chosen columns in this browser. */
export const writeColumns = (names: readonly string[]): void => keep(storageKey, names.join(','));

/** Shows an explanation of the state after the title: a question, a reason, or a result. */
export function Reason({ run }: { run: RunItem }) {
  const message = run.status_message?.message;
  if (run.state === 'BLOCKED')
    return <span className="say waitc">{`asks: ${visibleText(run.blocked_on?.title ?? '')}`}</span>;
  if (run.state === 'FAILED' || run.state === 'ERROR') {
    const text = [run.status_message?.error_code, message].filter(Boolean).join(': ');
    return <span className={`say ${run.state === 'FAILED' ? 'badc' : 'errc'}`}>{visibleText(text)}</span>;
  }
  const children = run.child_runs;
  if (children && children.total > 0)
    return (
      <span className="say">
        {`${children.total} child ${children.total === 1 ? 'run' : 'runs'}${children.live > 0 ? `, ${children.live} live` : ''}`}
      </span>
    );
  const [artifact] = run.artifacts ?? [];
  if (artifact?.artifact_type === 'PULL_REQUEST')
    return (
      <span className="say row">
        <Icon name="pr" small />
        <span className="cut">
          {visibleText(/\/(\d+)(?:[/?#]|$)/.exec(artifact.data.url)?.[1] ?? artifact.data.branch)}
        </span>
      </span>
    );
  if (artifact?.artifact_type === 'FILE')
    return (
      <span className="say row">
        <Icon name="file" small />
        <span className="cut">{visibleText(artifact.data.title ?? artifact.data.filename)}</span>
      </span>
    );
  return message && !isTerminal(run.state) ? <span className="say">{visibleText(message)}</span> : null;
}

/** Shows the time of a run's last change. */
export const Changed = ({ run }: { run: RunItem }) => <Ago time={run.updated_at} />;
