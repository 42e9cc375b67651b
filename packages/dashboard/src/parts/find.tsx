import { useRef } from 'react';
import { Pad } from './blocks.tsx';
import { FindBox, FindInput } from './controls.tsx';
import { Icon } from './icon.tsx';
import { useKeys } from './keys.ts';

/** Returns true if one of the texts contains the words, in upper or lower case. */
export const hasWords = (words: string, ...texts: readonly (string | undefined)[]): boolean =>
  texts.some((text) => (text ?? '').toLowerCase().includes(words.trim().toLowerCase()));

/** Moves the focus to the next or previous row of the lists of the page. The focus is on the first link or button of a row. */
export function moveFocus(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('#main tbody tr')].filter((row) => row.checkVisibility());
  const current = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.max(0, Math.min(rows.length - 1, current + by))];
  next?.querySelector<HTMLElement>('a[href], button')?.focus();
}

/**
 * The search field of a list that is loaded as a whole. The screen shows only the rows with these words. The keys of a list belong to this
 * field: `/` focuses it, and `j` and `k` move between the rows.
 */
export function Find({ words, change }: { words: string; change: (words: string) => void }) {
  const field = useRef<HTMLInputElement>(null);
  useKeys([
    { key: '/', does: 'Search this list', run: () => field.current?.focus() },
    { key: 'j', does: 'Next row', run: () => moveFocus(1) },
    { key: 'k', does: 'Row before', run: () => moveFocus(-1) },
  ]);
  return (
    <FindBox notNarrow>
      <Icon name="search" small />
      <FindInput
        ref={field}
        grow
        aria-label="Search this list"
        placeholder="Search"
        value={words}
        onChange={({ target }) => change(target.value)}
        onKeyDown={({ key, currentTarget }) => {
          if (key !== 'Escape') return;
          change('');
          currentTarget.blur();
        }}
      />
      <span>
        <kbd>/</kbd>
      </span>
    </FindBox>
  );
}

/** Says that no row of a list has the words of its search field. `found`: number of the rows with these words. */
export const NothingFound = ({ words, found }: { words: string; found: number }) =>
  found === 0 && words.trim() !== '' ? (
    <Pad as="p" tone="muted">{`Nothing here has ${JSON.stringify(words.trim())} in its name.`}</Pad>
  ) : null;
