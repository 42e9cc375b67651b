import type { ReactNode } from 'react';

/** Shows one fact, a name with a value, of a list of facts (`dl`). Shows nothing if there is no value. */
export function Fact({ name, children }: { name: string; children: ReactNode }) {
  if (children === undefined || children === null || children === false || children === '') return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
