/** Signs in people with passkeys: people whom the service knows, and new people with an invitation. */
import { randomUUIDv7 } from 'node:crypto';
import type { InvitedWithPasskey, PasskeyAnswer } from '@runyard/contract/team/passkeys';
import type { Signer } from '../../../platform/secrets/signer.ts';
import type { RequestOrigin } from '../../../platform/serving/served-route.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { createPasskeySession, type NewSession } from '../key-management/browser-sessions.ts';
import { hashKey } from '../keys/key.ts';
import {
  type AcceptRefusal,
  acceptWith,
  addMember,
  type IsManagedByRules,
  insertUser,
  NotAccepted,
} from '../people/accept.ts';
import { findPasskey, insertPasskey, notePasskeyUse } from './passkeys.ts';
import type { PasskeyPlace } from './place.ts';
import { type QuestionUse, readQuestion, useQuestion } from './questions.ts';
import { type NotRight, verifyRegistration, verifyUse } from './verify.ts';

/** The database, the keys that sign questions, and the address of the passkeys. */
export interface PasskeyDeps {
  readonly db: Database;
  readonly signing: Signer;
  readonly place: PasskeyPlace;
}

/** Returns the name of an invitation in the questions about it. It does not reveal the key. */
export const questionOfInvitation = (key: string): string => hashKey(key).toString('base64url');

/** Signs in the person of a passkey. Returns the reason if the answer is not right. */
export async function signInWithPasskey(
  { db, signing, place }: PasskeyDeps,
  answer: PasskeyAnswer,
  from: RequestOrigin,
): Promise<NewSession | NotRight> {
  const found = await findPasskey(db, answer.id);
  if (!found) return { notRight: 'the passkey is unknown' };
  const { userHandle } = answer.response;
  if (userHandle !== undefined && Buffer.from(userHandle, 'base64url').toString() !== found.user_uid)
    return { notRight: 'the passkey belongs to another person' };
  const stored = { publicKey: found.public_key, counter: found.counter };
  const isSignIn = (about: QuestionUse | null) => (about?.use === 'sign-in' ? about : null);
  const used = await verifyUse(place, answer, stored, (challenge) => isSignIn(readQuestion(signing, challenge)));
  if ('notRight' in used) return used;
  return await db.transaction(async (tx) => {
    if (!(await useQuestion(tx, used.question.challenge))) return { notRight: 'the answer was used already' };
    if (!(await notePasskeyUse(tx, found.id, used.counter))) return { notRight: 'the counter went back' };
    return (await createPasskeySession(tx, found.id, from)) ?? { notRight: 'the person is in no team' };
  });
}

/** Creates a person with a passkey, adds the person to the team of the invitation, and signs the person in. */
export async function joinWithPasskey(
  { db, signing, place }: PasskeyDeps,
  { key, display_name: displayName, name, passkey }: InvitedWithPasskey,
  isManagedByRules: IsManagedByRules,
  from: RequestOrigin,
): Promise<NewSession | NotRight | AcceptRefusal> {
  const invitation = questionOfInvitation(key);
  const isOfInvitation = (about: QuestionUse | null) =>
    about?.use === 'join' && about.by === invitation ? about : null;
  const made = await verifyRegistration(place, passkey, (challenge) =>
    isOfInvitation(readQuestion(signing, challenge)),
  );
  if ('notRight' in made) return made;
  const { about, challenge } = made.question;
  const person = { uid: about.use === 'join' ? about.userUid : '', displayName };
  return await acceptWith(db, { key, isManagedByRules }, async (tx, used) => {
    if (!(await useQuestion(tx, challenge))) throw new NotAccepted('unknown');
    await tx.query(insertUser, [randomUUIDv7(), person.uid, displayName, null]);
    await addMember(tx, used, person, { from, keyId: null });
    const stored = await insertPasskey(tx, person.uid, name, made);
    const session = stored && (await createPasskeySession(tx, stored.id, from));
    if (!session) throw new NotAccepted('unknown');
    return session;
  });
}
