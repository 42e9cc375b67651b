/**
 * Remembers which session began on a page of this origin. Browsers send cookies to all ports of a host, so a program on another port can
 * replace the cookie of the session. Such a program cannot write the storage of this origin.
 */

const name = 'runyard-session';
/** Used if the browser keeps no storage for this page. */
let inMemory: string | null = null;

/** Remembers that the person signed in on this page, or has agreed to the session. `uid` names the session. */
export function rememberSession(uid: string): void {
  inMemory = uid;
  try {
    localStorage.setItem(name, uid);
  } catch {
    // The page asks again after it is loaded again.
  }
}

/** Returns whether the session with this UID began on a page of this origin. */
export function isOwnSession(uid: string): boolean {
  try {
    return (localStorage.getItem(name) ?? inMemory) === uid;
  } catch {
    return inMemory === uid;
  }
}
