import { visibleText } from '@runyard/contract/wire/visible';
import { useState } from 'react';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { usePrinted } from '../../parts/printing.ts';
import type { NoticeEntry } from './entry.ts';
import styles from './run.module.css';
import { Turn } from './turn.tsx';

interface PlanItem {
  readonly content: string;
  readonly status: string | undefined;
}

/** Returns the steps of a plan that a harness reports (ACP: `plan` with `entries`). */
function planOf({ name, data }: NoticeEntry): readonly PlanItem[] | undefined {
  const entries = (data as { entries?: unknown } | null)?.entries;
  if (!/plan/i.test(name) || !Array.isArray(entries)) return undefined;
  return entries.flatMap((item: { content?: unknown; status?: string } | null) =>
    typeof item?.content === 'string' ? [{ content: item.content, status: item.status }] : [],
  );
}

/** Shows a notice of a harness. A plan is shown as a list of steps. The data of any other notice is shown in a folded block. */
export function Notice({ entry }: { entry: NoticeEntry }) {
  const [isOpen, setOpen] = useState(false);
  const isPrinted = usePrinted();
  const plan = planOf(entry);
  if (plan) {
    const done = plan.filter(({ status }) => status === 'completed').length;
    return (
      <Turn at={entry.at}>
        <div className="act">
          <div className="sum row">
            <Icon name="plan" small />
            <span className="md">Plan</span>
            <span className="dim">{`${done} of ${plan.length} done`}</span>
          </div>
          <div className="card-b">
            <ul className="plan">
              {plan.map(({ content, status }, index) => (
                <li key={index}>
                  <Icon name={status === 'completed' ? 'check' : status === 'in_progress' ? 'right' : 'more'} small />
                  <span className={status === 'completed' ? 'mut' : status === 'in_progress' ? 'md' : ''}>
                    {visibleText(content)}
                  </span>
                </li>
              ))}
            </ul>
          </div>
        </div>
      </Turn>
    );
  }
  const text = (entry.data as { text?: unknown } | null)?.text;
  return (
    <Turn at={entry.at}>
      <details
        className={styles.notice}
        open={isOpen || isPrinted}
        onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
      >
        <summary className="small dim">{visibleText(entry.name.replaceAll('_', ' '))}</summary>
        {(isOpen || isPrinted) &&
          (typeof text === 'string' ? <Markdown text={text} /> : <JsonView value={entry.data} />)}
      </details>
    </Turn>
  );
}
