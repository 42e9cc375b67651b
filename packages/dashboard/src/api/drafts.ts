/**
 * Texts that a person has typed but not sent. This tab keeps them, so that they survive a reload and a new sign-in. They belong to one
 * person: the next person of the tab neither sees nor keeps them.
 */

const prefix = 'runyard.draft.';

/** Returns the beginning of the names under which the drafts of a person are kept. */
export const draftsOf = (person: string): string => `${prefix}${person}.`;

/** Removes the drafts of all persons, except those of `person`. */
export function dropDrafts(person?: string): void {
  try {
    for (const name of Object.keys(sessionStorage))
      if (name.startsWith(prefix) && !(person && name.startsWith(draftsOf(person)))) sessionStorage.removeItem(name);
  } catch {}
}
