import type { ReactNode } from 'react';

/** The head of a tab: its name, one sentence, and its button. */
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
