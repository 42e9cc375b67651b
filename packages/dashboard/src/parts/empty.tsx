import type { ReactNode } from 'react';
import { P, Pad } from './blocks.tsx';
import { CommandBlock } from './copy.tsx';
import styles from './empty.module.css';

/** Shows a sentence in place of an empty list, with a command that creates the first entry, and a button. */
export function Empty({
  title,
  children,
  command,
  action,
}: {
  title: string;
  children: ReactNode;
  command?: string;
  action?: ReactNode;
}) {
  return (
    <Pad>
      <div className={styles.empty}>
        <h2>{title}</h2>
        <P tone="muted">{children}</P>
        {command !== undefined && <CommandBlock command={command} />}
        {action}
      </div>
    </Pad>
  );
}

/** Shows grey rows while the real rows are being loaded. The style sheet shows the grey rows only after 150 ms. */
export function SkeletonRows({ count = 8 }: { count?: number }) {
  return (
    <div className={styles.skeleton} data-part="skeleton" aria-hidden="true">
      {Array.from({ length: count }, (_, index) => (
        <div key={index} className={styles.skeletonRow}>
          <span className={`${styles.bar} ${styles.short}`} />
          <span className={`${styles.bar} ${styles.wide}`} />
        </div>
      ))}
    </div>
  );
}

/** Fills the space of the rows of a table that are not rendered. */
export function Space({ px }: { px: number }) {
  if (px <= 0) return null;
  return (
    <tr>
      <td className={styles.space} style={{ height: px }} />
    </tr>
  );
}
