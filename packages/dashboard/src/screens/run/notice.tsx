import { visibleText } from '@runyard/contract/wire/visible';
import { useState } from 'react';
import { Row, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { usePrinted } from '../../parts/printing.ts';
import type { NoticeEntry } from './entry.ts';
import { noticeWords } from './notice-words.ts';
import { doneText, Plan } from './plan.tsx';
import styles from './run.module.css';
import { planIn } from './step-words.ts';
import talk from './talk.module.css';
import { Turn } from './turn.tsx';

/** Shows a notice: a plan as a list of steps, a thought as a folded text, and any other notice as a sentence. */
export function Notice({ entry }: { entry: NoticeEntry }) {
  const plan = /plan/i.test(entry.name) ? planIn(entry.data) : undefined;
  const text = (entry.data as { text?: unknown } | null)?.text;
  return (
    <Turn at={entry.at} seqs={[entry.seq]}>
      {plan ? (
        <div className={styles.act}>
          <div className={styles.actHead}>
            <Icon name="plan" small />
            <Text medium>Plan</Text>
            <Text tone="dim">{doneText(plan)}</Text>
          </div>
          <Plan items={plan} />
        </div>
      ) : typeof text === 'string' ? (
        <Folded name={entry.name} text={text} />
      ) : (
        <Sentence entry={entry} />
      )}
    </Turn>
  );
}

/** Shows a long text of the harness, such as a thought, after a click on its name. */
function Folded({ name, text }: { name: string; text: string }) {
  const [isOpen, setOpen] = useState(false);
  const open = usePrinted() || isOpen;
  return (
    <details className={talk.notice} open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <Text as="summary" tone="dim" small>
        {visibleText(name.replaceAll('_', ' '))}
      </Text>
      {open && <Markdown text={text} />}
    </details>
  );
}

function Sentence({ entry }: { entry: NoticeEntry }) {
  const [isRaw, setRaw] = useState(false);
  const { icon, words, isBad } = noticeWords(entry);
  return (
    <>
      <Row small top>
        <Icon name={icon} small />
        <Text tone={isBad ? 'wait' : 'dim'} grow>
          {visibleText(words)}
        </Text>
        <Button kind="ghost" small aria-expanded={isRaw} onClick={() => setRaw(!isRaw)}>
          Raw
        </Button>
      </Row>
      {isRaw && <JsonView value={{ name: entry.name, data: entry.data }} />}
    </>
  );
}
