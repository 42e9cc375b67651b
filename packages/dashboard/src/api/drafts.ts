/**
 * Texts that a person has typed but not sent. This tab keeps them, so that they survive a reload and a new sign-in. They belong to one
 * person: the next person of the tab neither sees nor keeps them.
 */

const prefix = 'runyard.draft.';
const nameOf = (person: string, run: string): string => `${prefix}${person}.${run}`;

/** Returns the text that the person has typed for the run; empty if there is none, or if the browser forbids storage. */
export function readDraft(person: string, run: string): string {
  try {
    return sessionStorage.getItem(nameOf(person, run)) ?? '';
  } catch {
    return '';
  }
}

/** Keeps the text. An empty text removes the draft. */
export function keepDraft(person: string, run: string, text: string): void {
  try {
    if (text === '') sessionStorage.removeItem(nameOf(person, run));
    else sessionStorage.setItem(nameOf(person, run), text);
  } catch {}
}

/** Removes the drafts of all persons, except those of `person`. */
export function dropDrafts(person?: string): void {
  try {
    for (const name of Object.keys(sessionStorage))
      if (name.startsWith(prefix) && !(person !== undefined && name.startsWith(nameOf(person, ''))))
        sessionStorage.removeItem(name);
  } catch {}
}
