import type { ReactNode } from 'react';
import { clockText, exactText } from '../../parts/format.ts';

/** Shows the time of an entry of the conversation, and its content beside the time. */
export function Turn({ at, children }: { at: string | undefined; children: ReactNode }) {
  const time = at === undefined ? undefined : Date.parse(at);
  return (
    <div className="turn">
      {time === undefined ? (
        <span />
      ) : (
        <time dateTime={at} title={exactText(time)}>
          {clockText(time)}
        </time>
      )}
      <div className="say">{children}</div>
    </div>
  );
}
