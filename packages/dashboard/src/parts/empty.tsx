import type { ReactNode } from 'react';
import { CommandBlock } from './copy.tsx';

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
    <div className="pad">
      <div className="empty">
        <h2>{title}</h2>
        <p className="mut">{children}</p>
        {command !== undefined && <CommandBlock command={command} />}
        {action}
      </div>
    </div>
  );
}

/** Shows grey rows while the real rows are being loaded. The style sheet shows the grey rows only after 150 ms. */
export function SkeletonRows({ count = 8 }: { count?: number }) {
  return (
    <div className="skeleton" aria-hidden="true">
      {Array.from({ length: count }, (_, index) => (
        <div key={index} className="skeleton-row">
          <span className="skel b" />
          <span className="skel a" />
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
      <td className="space" style={{ height: px }} />
    </tr>
  );
}
