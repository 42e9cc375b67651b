import type { Search } from '../../frame/search.ts';

/** Shows the activity of the last 24 hours. */
export function Strip(_: { search: Search }) {
  return null;
}
