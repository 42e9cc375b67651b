import type { Search } from '../../frame/search.ts';

export function SaveViewDialog(_: { search: Search; close: () => void }) {
  return null;
}
