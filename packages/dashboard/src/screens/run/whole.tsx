import { useState } from 'react';
import { useClient } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Button } from '../../parts/controls.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Terminal } from '../../parts/terminal.tsx';
import { type ActionEntry, type TextEntry, textOf } from './entry.ts';

/** Shows a button that reads the whole text of a message, because the page has only a part of it. */
export function Whole({ entry, runId }: { entry: TextEntry | ActionEntry; runId: string }) {
  const client = useClient();
  const [whole, setWhole] = useState<string>();
  const { error, attempt } = useAttempts();
  if (entry.shortened === undefined) return null;
  const messageSeq = String(entry.shortened);
  const read = async () => {
    await attempt(async () => {
      const { steps } = await client.getRunMessage({ params: { runId, messageSeq } });
      const blocks = steps.flatMap(({ messages }) => messages.flatMap(({ content }) => content));
      setWhole(
        blocks
          .map((block) =>
            block.type === 'text'
              ? block.text
              : block.type === 'action_result'
                ? block.output.text
                : textOf('input' in block ? block.input : block.data),
          )
          .join('\n'),
      );
    });
  };
  if (whole !== undefined) return <Terminal text={whole} />;
  return (
    <div>
      <Button small onClick={() => void read()}>
        This is a part. Show all
      </Button>
      <Problem error={error} />
    </div>
  );
}
