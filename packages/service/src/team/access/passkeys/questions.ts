/**
 * The questions for authenticators. A question is signed, and the database stores nothing about it: strangers can ask for questions as
 * often as they want. A row is stored only for a question with a right answer, so that each question is answered once.
 */
import { hash, randomBytes } from 'node:crypto';
import { passkeyMinutes } from '@runyard/contract/team/passkeys';
import type { Signer } from '../../../platform/secrets/signer.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';

/**
 * The use of a question. `sign-in`: any person. `add`: the person with the UID `userUid`, in requests with the API key or session `by`.
 * `join`: the new person who will get the UID `userUid`, with the invitation whose key has the hash `by`.
 */
export type QuestionUse =
  | { readonly use: 'sign-in' }
  | { readonly use: 'add' | 'join'; readonly userUid: string; readonly by: string };

interface Question {
  readonly about: QuestionUse;
  /** Milliseconds since 1970. */
  readonly endsAtMs: number;
  readonly nonce: string;
}

const purpose = 'passkey question';

/** Returns the text of a new question: the challenge of Web Authentication. */
export function askQuestion(signing: Signer, about: QuestionUse, now = Date.now()): string {
  const question: Question = {
    about,
    endsAtMs: now + passkeyMinutes * 60_000,
    nonce: randomBytes(16).toString('base64url'),
  };
  const written = Buffer.from(JSON.stringify(question)).toString('base64url');
  return `${written}.${signing.sign(purpose, written)}`;
}

/** Returns the use of a question; null if the service did not ask it, or if its time is over. `challenge`: the text as base64url. */
export function readQuestion(signing: Signer, challenge: string, now = Date.now()): QuestionUse | null {
  const [written = '', signature = ''] = Buffer.from(challenge, 'base64url').toString().split('.');
  if (!signing.verify(purpose, written, signature)) return null;
  const { about, endsAtMs } = JSON.parse(Buffer.from(written, 'base64url').toString()) as Question;
  return endsAtMs > now ? about : null;
}

/** Inserts nothing if the row exists, so that a question can be answered only once. */
const insertUse = defineStatement({
  name: 'insert_passkey_use',
  text: `
    INSERT INTO passkey_uses (hash, expires_at) VALUES ($1, now() + interval '${2 * passkeyMinutes} minutes')
    ON CONFLICT DO NOTHING RETURNING hash::text AS hash`,
  row: { hash: text() },
});

/** Records that a question was answered. Returns false if it was answered before. */
export async function useQuestion(tx: Queryable, challenge: string): Promise<boolean> {
  const [first] = await tx.query(insertUse, [hash('sha256', challenge, 'buffer')]);
  return first !== undefined;
}
