/** The columns of the list of runs. */

import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import type { ReactNode } from 'react';
import { keep, readKept } from '../../api/kept.ts';
import { Row, Text } from '../../parts/blocks.tsx';
import { dollarText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import type { IconName } from '../../parts/icons.ts';
import type { Look } from '../../parts/look.ts';
import { Say } from '../../parts/table.tsx';
import { Ago, Lasting } from '../../parts/time.tsx';

export interface Column {
  readonly name: string;
  readonly label: string;
  readonly width: number;
  readonly looks: Look;
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

/** Shows the cost of a run; nothing if it has asked no model. */
export function CostOfRun({ run: { request_usage: usage } }: { run: RunItem }) {
  if (usage === undefined) return null;
  const { inference_cost_usd: usd } = usage;
  return usd === undefined ? <span title="A request was not priced">not known</span> : dollarText(usd);
}

/** The columns to the right of state and title, from left to right. */
export const columns: readonly Column[] = [
  {
    name: 'started_by',
    label: 'Started by',
    width: 180,
    looks: {},
    isDefault: true,
    cell: (run) => (
      <Row as="span" title={run.source}>
        <Icon name={startIcons[run.source ?? 'API'] ?? 'term'} small tone="dim" />
        <Text cut>{visibleText(starterOf(run))}</Text>
      </Row>
    ),
  },
  {
    name: 'model',
    label: 'Model',
    width: 140,
    looks: { tone: 'dim', onlyWide: true },
    isDefault: true,
    cell: (run) => visibleText(run.model_id?.split('/').at(-1) ?? ''),
  },
  {
    name: 'environment',
    label: 'Environment',
    width: 140,
    looks: { tone: 'dim', onlyWide: true },
    isDefault: false,
    cell: (run) => visibleText(run.environment?.name ?? run.environment?.environment_id ?? ''),
  },
  {
    name: 'harness',
    label: 'Harness',
    width: 92,
    looks: { tone: 'dim', onlyWide: true },
    isDefault: false,
    cell: (run) => run.harness,
  },
  {
    name: 'time',
    label: 'Time',
    width: 92,
    looks: { number: true },
    isDefault: true,
    cell: (run) =>
      run.started_at && (
        <Lasting from={run.started_at} to={run.finished_at ?? (isTerminal(run.state) ? run.updated_at : undefined)} />
      ),
  },
  {
    name: 'cost',
    label: 'Cost',
    width: 72,
    looks: { number: true },
    isDefault: true,
    cell: (run) => <CostOfRun run={run} />,
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
  if (run.state === 'BLOCKED') return <Say tone="wait">{`asks: ${visibleText(run.blocked_on?.title ?? '')}`}</Say>;
  if (run.state === 'FAILED' || run.state === 'ERROR') {
    const text = [run.status_message?.error_code, message].filter(Boolean).join(': ');
    return <Say tone={run.state === 'FAILED' ? 'bad' : 'error'}>{visibleText(text)}</Say>;
  }
  const children = run.child_runs;
  if (children && children.total > 0)
    return (
      <Say>
        {`${children.total} child ${children.total === 1 ? 'run' : 'runs'}${children.live > 0 ? `, ${children.live} live` : ''}`}
      </Say>
    );
  const [artifact] = run.artifacts ?? [];
  if (artifact?.artifact_type === 'PULL_REQUEST')
    return (
      <Say row>
        <Icon name="pr" small />
        <Text cut>{visibleText(/\/(\d+)(?:[/?#]|$)/.exec(artifact.data.url)?.[1] ?? artifact.data.branch)}</Text>
      </Say>
    );
  if (artifact?.artifact_type === 'FILE')
    return (
      <Say row>
        <Icon name="file" small />
        <Text cut>{visibleText(artifact.data.title ?? artifact.data.filename)}</Text>
      </Say>
    );
  return message && !isTerminal(run.state) ? <Say>{visibleText(message)}</Say> : null;
}

/** Shows the time of a run's last change. */
export const Changed = ({ run }: { run: RunItem }) => <Ago time={run.updated_at} />;
