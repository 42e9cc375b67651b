import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Tabs } from './blocks.tsx';

/** A tab that leads to another query of the same screen. */
interface QueryTab {
  readonly name: ReactNode;
  /** The query of the tab. */
  readonly search: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly isCurrent: boolean;
}

/** Shows tabs below the head of a screen. The shown tab is in the query of the address. */
export const QueryTabs = ({ label, tabs }: { label: string; tabs: readonly QueryTab[] }) => (
  <Tabs aria-label={label}>
    {tabs.map(({ name, search, isCurrent }, index) => (
      <Link
        key={index}
        to="."
        search={search}
        activeOptions={{ exact: true }}
        aria-current={isCurrent ? 'page' : undefined}
      >
        {name}
      </Link>
    ))}
  </Tabs>
);
