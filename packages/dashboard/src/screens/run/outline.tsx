import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { useRead } from '../../api/read.ts';
import { slowMs } from '../../api/slow-reads.ts';
import { Hint, Stack, Text } from '../../parts/blocks.tsx';
import { clockText } from '../../parts/format.ts';
import talk from './talk.module.css';

/** Maximum number of turns that the outline lists. */
const most = 200;

/** Lists the messages with which the turns of a run begin, as links to them. Shows nothing for a run of one turn. */
export function Outline({ run }: { run: RunItem }) {
  const { data } = useRead(
    ['turns', run.run_id, run.updated_at],
    (client) => client.findInRun({ params: { runId: run.run_id }, query: { kind: 'turn', limit: most } }),
    { placeholderData: (before) => before, refetchInterval: slowMs, retry: false },
  );
  const turns = data?.matches ?? [];
  if (turns.length < 2) return null;
  return (
    <Stack as="nav" gap={1} className={talk.outline} aria-label="Turns of the conversation">
      <h2>Turns</h2>
      <ol>
        {turns.map(({ seq, excerpt, occurred_at: at }) => (
          <li key={seq}>
            <a href={`#step-${seq}`}>
              <Text cut grow>
                {visibleText(excerpt.replaceAll(/```\w*|\s+/g, ' ').trim())}
              </Text>
              <Hint>{clockText(Date.parse(at))}</Hint>
            </a>
          </li>
        ))}
      </ol>
      {(data?.count ?? 0) > turns.length && <Hint as="p">{`The first ${most} of ${data?.count} turns.`}</Hint>}
    </Stack>
  );
}
