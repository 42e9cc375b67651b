/** Folds entries of a conversation that a reader rarely needs one by one. */

import type { ActionEntry, Entry } from './entry.ts';
import { onlyReads, stepWords } from './step-words.ts';

/** Neighbouring actions that only read. */
export interface FoldedReads {
  readonly kind: 'reads';
  readonly id: string;
  readonly entries: readonly ActionEntry[];
}

/**
 * Returns the entries without those that say the same as the entry after them: a tool call that asks a person, before the question itself.
 * Also leaves out empty texts.
 */
export const withoutRepeats = (entries: readonly Entry[]): readonly Entry[] =>
  entries.filter((entry, index) => {
    if (entry.kind === 'text') return entry.text.trim() !== '';
    const next = entries[index + 1];
    return !(
      entry.kind === 'action' &&
      next?.kind === 'request' &&
      next.isQuestion &&
      stepWords(entry).kind === 'question'
    );
  });

/** Returns the entries. Two or more neighbouring actions that only read become one item. */
export function foldReads(entries: readonly Entry[]): readonly (Entry | FoldedReads)[] {
  const items: (Entry | FoldedReads)[] = [];
  for (const entry of entries) {
    const last = items.at(-1);
    if (entry.kind !== 'action' || !onlyReads(entry)) items.push(entry);
    else if (last?.kind === 'reads') items[items.length - 1] = { ...last, entries: [...last.entries, entry] };
    else if (last?.kind === 'action' && onlyReads(last))
      items[items.length - 1] = { kind: 'reads', id: `reads/${last.id}`, entries: [last, entry] };
    else items.push(entry);
  }
  return items;
}
