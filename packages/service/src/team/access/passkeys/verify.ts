/** Checks the answers of authenticators, with `@simplewebauthn/server`. Loads this library with the first passkey. */
import { type PasskeyAnswer, type PasskeyRegistration, passkeyMinutes } from '@runyard/contract/team/passkeys';
import type { Logger } from 'pino';
import { type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { PasskeyPlace } from './place.ts';
import type { QuestionUse } from './questions.ts';

const library = () => import('@simplewebauthn/server');
const decoders = () => import('@simplewebauthn/server/helpers');

/** EdDSA, ES256 and RS256 (IANA COSE algorithms): each authenticator has one of them. */
const algorithms = [-8, -7, -257];
const timeout = passkeyMinutes * 60_000;
const noExtensions = { clientExtensionResults: {} };

/** A person as an authenticator shows the person. */
export interface ShownPerson {
  readonly uid: string;
  readonly displayName: string;
}

/** Returns the options with which a page makes a passkey. `known`: credential ids that the person has already. */
export async function newPasskeyOptions(
  { rpId }: PasskeyPlace,
  challenge: string,
  { uid, displayName }: ShownPerson,
  known: readonly string[],
): Promise<Record<string, unknown>> {
  const { generateRegistrationOptions } = await library();
  const options = await generateRegistrationOptions({
    rpName: 'Runyard',
    rpID: rpId,
    userID: new Uint8Array(Buffer.from(uid)),
    userName: displayName,
    userDisplayName: displayName,
    challenge,
    timeout,
    attestationType: 'none',
    excludeCredentials: known.map((id) => ({ id })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: algorithms,
  });
  return { ...options };
}

/** Returns the options with which a page uses a passkey of this service. */
export async function signInOptions({ rpId }: PasskeyPlace, challenge: string): Promise<Record<string, unknown>> {
  const { generateAuthenticationOptions } = await library();
  const options = await generateAuthenticationOptions({
    rpID: rpId,
    challenge,
    timeout,
    userVerification: 'required',
  });
  return { ...options };
}

/** The reason why an answer is not right, for the log. */
export interface NotRight {
  readonly notRight: string;
}

/** Returns the use of a question that the service has asked, and that may be answered in this request; null: there is none. */
type ReadQuestion = (challenge: string) => QuestionUse | null;

/** The question that an answer answers. */
interface Answered {
  readonly challenge: string;
  readonly about: QuestionUse;
}

/** Returns the member `expectedChallenge` for the library, and a function that returns the question after the check. */
function expecting(read: ReadQuestion) {
  let answered: Answered | undefined;
  return {
    expectedChallenge: (challenge: string) => {
      const about = read(challenge);
      if (about !== null) answered = { challenge, about };
      return about !== null;
    },
    question: () => {
      if (answered === undefined) throw new Error('the answer has no question');
      return answered;
    },
  };
}

/** A new passkey, before it is stored. */
export interface MadePasskey {
  readonly question: Answered;
  readonly credentialId: Buffer;
  readonly publicKey: Buffer;
  readonly counter: number;
  readonly transports: readonly string[];
  readonly isSynced: boolean;
}

/** Checks the registration of a passkey. */
export async function verifyRegistration(
  { rpId, origin }: PasskeyPlace,
  { response, ...sent }: PasskeyRegistration,
  read: ReadQuestion,
): Promise<MadePasskey | NotRight> {
  const { expectedChallenge, question } = expecting(read);
  const { verifyRegistrationResponse } = await library();
  return await reasoned(async () => {
    if (await hasCertificate(response.attestationObject)) return { notRight: 'the attestation has a certificate' };
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: { ...sent, ...noExtensions, response: { ...response, transports: response.transports ?? [] } },
      expectedChallenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      requireUserVerification: true,
      supportedAlgorithmIDs: algorithms,
    });
    if (!verified) return { notRight: 'the attestation is not right' };
    const { credential, credentialDeviceType } = registrationInfo;
    if (credential.id !== sent.id) return { notRight: 'the id is not that of the credential' };
    return {
      question: question(),
      credentialId: Buffer.from(credential.id, 'base64url'),
      publicKey: Buffer.from(credential.publicKey),
      counter: credential.counter,
      transports: response.transports ?? [],
      isSynced: credentialDeviceType === 'multiDevice',
    };
  });
}

/**
 * Returns whether an attestation has certificates. The service does not ask for them, so browsers remove them. The library would send
 * requests to addresses in these certificates.
 */
async function hasCertificate(attestation: string): Promise<boolean> {
  const { decodeAttestationObject, isoBase64URL } = await decoders();
  const object = decodeAttestationObject(isoBase64URL.toBuffer(attestation));
  const format = object.get('fmt');
  return format !== 'none' && (format !== 'packed' || object.get('attStmt').get('x5c') !== undefined);
}

/** A stored passkey. */
interface StoredPasskey {
  readonly publicKey: Buffer;
  readonly counter: number;
}

/** Checks the use of a passkey. Returns the counter that the authenticator reports. */
export async function verifyUse(
  { rpId, origin }: PasskeyPlace,
  { response, ...sent }: PasskeyAnswer,
  stored: StoredPasskey,
  read: ReadQuestion,
): Promise<{ readonly counter: number; readonly question: Answered } | NotRight> {
  const { expectedChallenge, question } = expecting(read);
  const { verifyAuthenticationResponse } = await library();
  const { userHandle, ...rest } = response;
  return await reasoned(async () => {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: {
        ...sent,
        ...noExtensions,
        response: { ...rest, ...(userHandle === undefined ? {} : { userHandle }) },
      },
      expectedChallenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      credential: { id: sent.id, publicKey: new Uint8Array(stored.publicKey), counter: stored.counter },
      requireUserVerification: true,
    });
    if (!verified) return { notRight: 'the signature is wrong' };
    return { counter: authenticationInfo.newCounter, question: question() };
  });
}

/** The library throws for each answer that is not right, and for each text that it cannot decode. */
async function reasoned<T>(check: () => Promise<T | NotRight>): Promise<T | NotRight> {
  try {
    return await check();
  } catch (error) {
    return { notRight: String((error as Error).message).slice(0, 300) };
  }
}

/** Returns the refusal (403) of an answer that is not right, and writes the reason into the log: it would help an attacker. */
export function refusePasskey(log: Logger, { notRight }: NotRight): Refusal {
  log.warn({ reason: notRight }, 'the answer of a passkey was refused');
  return refuse('not_authorized', {
    detail:
      'The passkey is unknown here, or its answer is not for this page, is too old, was used already, or was not confirmed with a PIN, a fingerprint or a face. Try again.',
  });
}
