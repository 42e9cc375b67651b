import { maxPasskeys } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { Logger } from 'pino';
import type { Signer } from '../../platform/secrets/signer.ts';
import { notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import {
  type AddRefusal,
  addPasskey,
  credentialsOf,
  deletePasskey,
  listPasskeys,
  renamePasskey,
} from './passkeys/passkeys.ts';
import { type PasskeyPlace, passkeyPlaceOf } from './passkeys/place.ts';
import { askQuestion, type QuestionUse, readQuestion, useQuestion } from './passkeys/questions.ts';
import { questionOfInvitation } from './passkeys/sign-in.ts';
import { newPasskeyOptions, refusePasskey, signInOptions, verifyRegistration } from './passkeys/verify.ts';
import { readInvitation } from './people/invitations.ts';
import { refuseAccept } from './people/refusals.ts';
import { serve } from './serve.ts';
import { newUid } from './teams/uid.ts';

interface PasskeyRouteDeps {
  readonly db: Database;
  readonly signing: Signer;
  readonly log: Logger;
  /** Returns the URL at which clients reach the service. */
  baseUrl(): string;
}

function refuseAdd(reason: AddRefusal): Refusal {
  if (reason === 'too_many')
    return refuse('conflict', { detail: `A person has at most ${maxPasskeys} passkeys; delete one.` });
  return refuse('not_authorized', { detail: 'passkey: this service knows it already. Make a new one.' });
}

const noPasskeyHere = (detail: string): Refusal => refuse('not_authorized', { detail });

/** Routes for the passkeys of the caller, and for the questions that a page asks an authenticator. */
export function passkeyRoutes({ db, signing, log, baseUrl }: PasskeyRouteDeps): readonly ServedRoute[] {
  const inPlace = async <T>(work: (place: PasskeyPlace) => Promise<T>): Promise<T | Refusal> => {
    const place = passkeyPlaceOf(baseUrl());
    return typeof place === 'string' ? noPasskeyHere(place) : await work(place);
  };
  return [
    serve(routes.listPasskeys, async ({ principal }) => ({ passkeys: await listPasskeys(db, principal) })),

    serve(routes.startPasskey, async ({ principal }) =>
      inPlace(async (place) => {
        const known = await credentialsOf(db, principal);
        if (known === 'too_many') return refuseAdd(known);
        const { uid, displayName } = principal.creator;
        const challenge = askQuestion(signing, { use: 'add', userUid: uid, by: principal.keyId });
        const options = await newPasskeyOptions(place, challenge, { uid, displayName }, known);
        return { origin: place.origin, options };
      }),
    ),

    serve(routes.createPasskey, async ({ principal, body }) =>
      inPlace(async (place) => {
        const { keyId, creator } = principal;
        const isOfCaller = (about: QuestionUse | null) =>
          about?.use === 'add' && about.by === keyId && about.userUid === creator.uid ? about : null;
        const made = await verifyRegistration(place, body.passkey, (challenge) =>
          isOfCaller(readQuestion(signing, challenge)),
        );
        if ('notRight' in made) return refusePasskey(log, made);
        return await db.transaction(async (tx) => {
          if (!(await useQuestion(tx, made.question.challenge)))
            return refusePasskey(log, { notRight: 'the answer was used already' });
          const added = await addPasskey(tx, principal, body.name, made);
          return typeof added === 'string' ? refuseAdd(added) : added;
        });
      }),
    ),

    serve(routes.updatePasskey, async ({ principal, params: { passkeyId }, body }) => {
      const renamed = isUuid(passkeyId) ? await renamePasskey(db, principal, passkeyId, body.name) : null;
      return renamed ?? notFound('passkey');
    }),

    serve(routes.deletePasskey, async ({ principal, params: { passkeyId } }) => {
      const outcome = isUuid(passkeyId) ? await deletePasskey(db, principal, passkeyId) : 'not_found';
      if (outcome === 'deleted') return { success: true as const };
      if (outcome === 'not_found') return notFound('passkey');
      return refuse('conflict', {
        detail: 'You could not sign in again without this passkey: add another passkey or create an API key first.',
      });
    }),

    serve(routes.startPasskeySignIn, async () =>
      inPlace(async (place) => {
        const options = await signInOptions(place, askQuestion(signing, { use: 'sign-in' }));
        return { origin: place.origin, options };
      }),
    ),

    serve(routes.startInvitedPasskey, async ({ body }) =>
      inPlace(async (place) => {
        if ((await readInvitation(db, body.key)) === null) return refuseAccept('unknown');
        const person = { uid: newUid(), displayName: body.display_name };
        const by = questionOfInvitation(body.key);
        const challenge = askQuestion(signing, { use: 'join', userUid: person.uid, by });
        return { origin: place.origin, options: await newPasskeyOptions(place, challenge, person, []) };
      }),
    ),
  ];
}
