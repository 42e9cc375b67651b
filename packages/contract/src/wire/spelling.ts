import { editDistance } from './edit-distance.ts';

/**
 * Returns a name in lower case without separators, so that `approvalPolicy`, `approval-policy` and `approval_policy` give the same result.
 */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '');

/** Maximum number of letters by which a misspelling may differ from the name. */
const maxDistance = 2;

/**
 * Returns the number of letters in which a misspelling may differ from the name: at most a third of the letters, so that two different
 * short names do not count as the same.
 */
const allowance = (name: string): number => Math.min(maxDistance, Math.floor(name.length / 3));

/** The known names of one list, such as the members of an object. */
export interface Spelling {
  /**
   * Returns the known name that `name` resembles; undefined if it resembles no known name. Names of up to three letters must be equal
   * except for case and separators. In names of four or five letters, one letter may differ. In longer names, two letters may differ.
   */
  suggest(name: string): string | undefined;
}

/** Prepares the comparison with `known`. */
export function makeSpelling(known: readonly string[]): Spelling {
  const byPlain = new Map(known.map((name) => [plain(name), name]));
  const near = [...byPlain].filter(([text]) => text.length > 3).map(([text, name]) => ({ text, name }));
  const longest = Math.max(0, ...near.map(({ text }) => text.length)) + maxDistance;
  return {
    suggest(name) {
      // Skip names that are too long. A name may have twice the length of the longest known name, because it may have separators between
      // all letters.
      if (name.length > 2 * longest) return undefined;
      const plainName = plain(name);
      const same = byPlain.get(plainName);
      if (same !== undefined || plainName.length > longest) return same;
      let found: { readonly name: string; readonly distance: number } | undefined;
      for (const { text, name: candidate } of near) {
        const most = Math.min(allowance(text), (found?.distance ?? maxDistance + 1) - 1);
        if (Math.abs(text.length - plainName.length) > most) continue;
        const edits = editDistance(plainName, text);
        if (edits <= most) found = { name: candidate, distance: edits };
      }
      return found?.name;
    },
  };
}
