/**
 * Remembers which session began on a page of this origin. Browsers send cookies to all ports of a host, so a program on another port can
 * replace the cookie of the session. Such a program cannot write the storage of this origin.
 */
import { keep, readKept } from './kept.ts';

/** The text before the code in the fragment of a one-time link. Browsers do not send the fragment to a server. */
export const signInFragment = 'sign-in=';

/** The text before the key in the fragment of an invitation's link. */
export const invitationFragment = 'invitation=';

/** Remembers that the person signed in on this page, or has agreed to the session. `uid` names the session. */
export const rememberSession = (uid: string): void => keep('session', uid);

/** Returns whether the session with this UID began on a page of this origin. */
export const isOwnSession = (uid: string): boolean => readKept('session') === uid;
