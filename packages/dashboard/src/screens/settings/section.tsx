import type { ReactNode } from 'react';

/** Shows the head of a settings tab: the name of the tab, a sentence about it, and a button. */
export function Section({ title, about, action }: { title: string; about: ReactNode; action?: ReactNode }) {
  return (
    <div className="row">
      <div className="grow">
        <h2>{title}</h2>
        <p className="mut">{about}</p>
      </div>
      {action}
    </div>
  );
}
