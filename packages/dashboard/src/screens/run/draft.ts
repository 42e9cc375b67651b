/** The text that a person has typed for a run, but not sent. */

import { draftsOf } from '../../api/drafts.ts';

/** Returns the text that the person has typed for the run; empty if there is none, or if the browser forbids storage. */
export function readDraft(person: string, run: string): string {
  try {
    return sessionStorage.getItem(draftsOf(person) + run) ?? '';
  } catch {
    return '';
  }
}

/** Keeps the text. An empty text removes the draft. */
export function keepDraft(person: string, run: string, text: string): void {
  try {
    if (text === '') sessionStorage.removeItem(draftsOf(person) + run);
    else sessionStorage.setItem(draftsOf(person) + run, text);
  } catch {}
}
