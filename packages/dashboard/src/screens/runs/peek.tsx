import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { useTeamRead } from '../../api/read.ts';
import { Fact, Facts, P, Row, Text } from '../../parts/blocks.tsx';
import { Button, ButtonLink } from '../../parts/controls.tsx';
import { dollarText } from '../../parts/format.ts';
import { StateBadge } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { Problem } from '../../parts/problem.tsx';
import { Ago, Lasting } from '../../parts/time.tsx';
import { starterOf } from './columns.tsx';
import styles from './runs.module.css';

/** Maximum number of characters of the prompt that the preview shows. */
const mostPrompt = 4000;

/** Shows a run beside the list: the reason for its state, its prompt, and its cost. The focus stays in the list. */
export function Peek({ run, close }: { run: RunItem; close: () => void }) {
  const whole = useTeamRead(['run', run.run_id], (client) => client.getRun({ params: { runId: run.run_id } }), {
    staleTime: 5_000,
  });
  useKeys([{ key: 'Escape', does: 'Close the preview', run: close }]);
  const title = visibleText(run.title);
  const usd = run.request_usage?.inference_cost_usd;
  const asks = run.blocked_on?.title;
  const prompt = whole.data?.prompt;
  return (
    <aside className={styles.peek} aria-label={`Preview of ${title}`}>
      <Row>
        <StateBadge state={run.state} large />
        <Text grow />
        <ButtonLink small to="/runs/$runId" params={{ runId: run.run_id }}>
          Open <kbd>↵</kbd>
        </ButtonLink>
        <Button kind="ghost" small icon="x" aria-label="Close the preview" onClick={close} />
      </Row>
      <h2>{title}</h2>
      {asks !== undefined && <P tone="wait">{`asks: ${visibleText(asks)}`}</P>}
      <Facts>
        <Fact name="Why">{run.status_message && visibleText(run.status_message.message)}</Fact>
        <Fact name="Started by">{visibleText(starterOf(run))}</Fact>
        <Fact name="Model">{run.model_id && <code>{visibleText(run.model_id)}</code>}</Fact>
        <Fact name="Environment">{visibleText(run.environment?.name ?? run.environment?.environment_id ?? '')}</Fact>
        <Fact name="Created">
          <Ago time={run.created_at} />
        </Fact>
        <Fact name="Time">{run.started_at && <Lasting from={run.started_at} to={run.finished_at} />}</Fact>
        <Fact name="Cost">{usd === undefined ? run.request_usage && 'not known' : dollarText(usd)}</Fact>
        <Fact name="Artifacts">{run.artifacts?.length ? String(run.artifacts.length) : undefined}</Fact>
      </Facts>
      {whole.error ? (
        <Problem error={whole.error} onRetry={() => void whole.refetch()} />
      ) : (
        prompt !== undefined && (
          <p className={styles.prompt}>
            {visibleText(prompt.length > mostPrompt ? `${prompt.slice(0, mostPrompt)}…` : prompt)}
          </p>
        )
      )}
      <Text spoken role="status">{`Preview of ${title}. Escape closes it.`}</Text>
    </aside>
  );
}
