import {
  type ComparedRun,
  maxComparedRuns,
  outlookOf,
  readComparedRun,
  reportsLater,
} from '@runyard/client/comparison';
import { isSettled } from '@runyard/contract/runs/run-states';
import { parseIsoDuration } from '@runyard/contract/wire/iso-duration';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueries } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { listOf } from '../../frame/search.ts';
import { Hint, Pad, Row, Text, TextLink } from '../../parts/blocks.tsx';
import { Button, Input } from '../../parts/controls.tsx';
import { countText, dollarText, durationText } from '../../parts/format.ts';
import { StateBadge } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Table } from '../../parts/table.tsx';
import { type Plan, RepeatForm, StartDialog } from './repeat-dialog.tsx';

const route = getRouteApi('/shell/compare');

/** Shows runs side by side, a run in each column. The runs are in the address. */
export function CompareScreen() {
  const ids = listOf(route.useSearch({ select: ({ run }) => run })).slice(0, maxComparedRuns);
  const client = useClient();
  const { team } = useSession();
  const navigate = useNavigate();
  const [isRepeating, setRepeating] = useState(false);
  const [plan, setPlan] = useState<Plan>();
  const show = (runs: readonly string[]) => navigate({ to: '/compare', search: { run: [...new Set(runs)] } });
  const answers = useQueries({
    queries: ids.map((runId) => ({
      queryKey: ['compared', team.uid, runId],
      queryFn: ({ signal }: { signal: AbortSignal }) => readComparedRun(client, runId, signal),
      refetchInterval: ({ state }: { state: { data?: ComparedRun | undefined } }) =>
        state.data !== undefined && isSettled(state.data.run.state) && !reportsLater(state.data.run)
          ? (false as const)
          : 3_000,
    })),
  });
  const runs = answers.flatMap(({ data }) => data ?? []);
  return (
    <Page
      title="Compare runs"
      status={<Hint>{countText(ids.length, 'run')}</Hint>}
      actions={
        <RoleButton
          needs="member"
          kind="primary"
          icon="again"
          disabled={runs.length === 0}
          run={() => setRepeating(true)}
        >
          Repeat with…
        </RoleButton>
      }
    >
      <Pad>
        <AddRun add={(id) => void show([...ids, id])} />
        {answers.map(({ error }, index) => error && <Problem key={ids[index]} error={error} />)}
      </Pad>
      {runs.length > 0 && <Comparison runs={runs} remove={(id) => void show(ids.filter((each) => each !== id))} />}
      {isRepeating && (
        <RepeatForm
          runs={runs.map(({ run }) => run).filter(({ is_comparison: isOne }) => isOne !== true)}
          planned={setPlan}
          close={() => setRepeating(false)}
        />
      )}
      {plan && (
        <StartDialog
          plan={plan}
          close={() => setPlan(undefined)}
          started={(created) => void show([...ids, ...created])}
        />
      )}
    </Page>
  );
}

function AddRun({ add }: { add: (id: string) => void }) {
  const [id, setId] = useState('');
  return (
    <Row>
      <Input
        aria-label="Id of a run to add"
        placeholder="Id of a run to add"
        value={id}
        onChange={({ target }) => setId(target.value)}
      />
      <Button
        disabled={id.trim() === ''}
        onClick={() => {
          add(id.trim());
          setId('');
        }}
      >
        Add
      </Button>
    </Row>
  );
}

/** Returns when the agent of a run began, and when the run ended. Both times count from the creation of the run. */
function timelineOf({ created_at: created, started_at: started, finished_at: finished }: ComparedRun['run']): string {
  const after = (time: string) => durationText(Date.parse(time) - Date.parse(created));
  const moments = [started && `agent began after ${after(started)}`, finished && `ended after ${after(finished)}`];
  return moments.filter(Boolean).join(', ');
}

/** The rows of the table, each with its cell for a run. */
const rows: readonly (readonly [string, (compared: ComparedRun) => ReactNode])[] = [
  ['State', ({ run }) => <StateBadge state={run.state} />],
  ['Model', ({ run }) => <code>{run.model_id}</code>],
  ['Harness', ({ run }) => run.agent_config?.harness?.type ?? 'oz'],
  [
    'Checks',
    ({ checks }) =>
      checks.map(({ name, passed }) => (
        <div key={name}>
          <Text tone={passed ? 'good' : passed === false ? 'bad' : 'dim'}>
            {`${visibleText(name)}: ${passed ? 'passed' : passed === false ? 'failed' : 'runs'}`}
          </Text>
        </div>
      )),
  ],
  ['Cost', ({ run }) => dollarText(outlookOf([run], 1).costUsd)],
  ['Time', ({ run }) => durationText(parseIsoDuration(run.run_time ?? '') ?? 0)],
  ['Timeline', ({ run }) => timelineOf(run)],
  ['Diff', ({ diff }) => diff && `${countText(diff.files, 'file')}, +${diff.additions} −${diff.deletions}`],
  [
    'Result',
    ({ run }) =>
      'result' in run ? (
        <JsonView value={run.result} />
      ) : (
        visibleText((run.state === 'SUCCEEDED' ? run.final_message : run.status_message?.message) ?? '')
      ),
  ],
  ['Prompt', ({ run }) => visibleText(run.submitted_prompt ?? run.prompt ?? '')],
  ['Configuration', ({ run }) => <JsonView value={run.agent_config} />],
];

function Comparison({ runs, remove }: { runs: readonly ComparedRun[]; remove: (id: string) => void }) {
  return (
    <Table
      bare
      aria-label="Runs side by side"
      columns={[
        { name: 'Part', spoken: true, width: 140 },
        ...runs.map(({ run }) => ({
          name: (
            <Row>
              <TextLink to="/runs/$runId" params={{ runId: run.run_id }}>
                {visibleText(run.title)}
              </TextLink>
              {run.is_comparison && <Hint>repeated</Hint>}
              <Button kind="ghost" aria-label={`Remove ${visibleText(run.title)}`} onClick={() => remove(run.run_id)}>
                ×
              </Button>
            </Row>
          ),
        })),
      ]}
    >
      {rows.map(([name, cell]) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          {runs.map((compared) => (
            <td key={compared.run.run_id}>
              <Text as="div" whole>
                {cell(compared)}
              </Text>
            </td>
          ))}
        </tr>
      ))}
    </Table>
  );
}
