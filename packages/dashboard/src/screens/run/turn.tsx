import type { ReactNode } from 'react';
import { clockText } from '../../parts/format.ts';
import { Exact } from '../../parts/time.tsx';

/** Shows the time of an entry of the conversation, and its content beside the time. */
export function Turn({ at, children }: { at: string | undefined; children: ReactNode }) {
  const time = Date.parse(at ?? '');
  return (
    <div className="turn">
      {Number.isNaN(time) ? <span /> : <Exact at={time}>{clockText(time)}</Exact>}
      <div className="say">{children}</div>
    </div>
  );
}
