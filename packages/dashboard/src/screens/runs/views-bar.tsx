import { Link } from '@tanstack/react-router';
import type { Search } from '../../frame/search.ts';
import { queryKeyOf, type View } from './views.ts';

/** Shows the views as tabs: those that everyone has, then the saved ones of the person. */
export function Views({ views, search }: { views: readonly View[]; search: Search }) {
  const current = queryKeyOf(search);
  return (
    <nav className="tabs" aria-label="Views">
      {views.map(({ name, search: query }) => (
        <Link
          key={name}
          to="/runs"
          search={query}
          {...(queryKeyOf(query) === current ? { 'aria-current': 'page' as const } : {})}
        >
          {name}
        </Link>
      ))}
    </nav>
  );
}
