import type { ReactNode } from 'react';
import { clockText } from '../../parts/format.ts';
import { Exact } from '../../parts/time.tsx';
import styles from './talk.module.css';

/**
 * Shows the time of an entry of the conversation, and its content beside the time. The time links to the entry. `seqs`: the numbers of the
 * entries that it shows.
 */
export function Turn({
  at,
  seqs = [],
  children,
}: {
  at: string | undefined;
  seqs?: readonly number[];
  children: ReactNode;
}) {
  const time = Date.parse(at ?? '');
  const clock = Number.isNaN(time) ? <span /> : <Exact at={time}>{clockText(time)}</Exact>;
  return (
    <div className={styles.turn} data-part="turn" data-seqs={seqs.join(' ')}>
      {seqs[0] === undefined ? clock : <a href={`#step-${seqs[0]}`}>{clock}</a>}
      <div className={styles.reply}>{children}</div>
    </div>
  );
}
