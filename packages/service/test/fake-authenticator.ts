/** Test support: an authenticator with a passkey (ES256). Each part of its answers can be wrong. */
import { createHash, createSign, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import type { PasskeyAnswer, PasskeyRegistration } from '@runyard/contract/team/passkeys';
import { isoCBOR } from '@simplewebauthn/server/helpers';

/** The options of a question, as far as the authenticator uses them. */
export interface FakeQuestion {
  readonly challenge: string;
  readonly rpId?: string;
  readonly rp?: { readonly id?: string };
  readonly user?: { readonly id: string };
}

/** Parts of an answer that a test changes. */
export interface Wrong {
  readonly origin?: string;
  readonly rpId?: string;
  readonly challenge?: string;
  readonly type?: string;
  readonly isVerified?: boolean;
  readonly counter?: number;
  readonly userHandle?: string;
  /** Statement of the attestation, with its format. */
  readonly attestation?: readonly [format: string, statement: Map<string, unknown>];
}

export interface FakeAuthenticator {
  readonly credentialId: string;
  create(question: FakeQuestion, wrong?: Wrong): PasskeyRegistration;
  use(question: FakeQuestion, wrong?: Wrong): PasskeyAnswer;
}

const base64Url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');
const sha256 = (data: Uint8Array | string) => createHash('sha256').update(data).digest();

function coseKeyOf(publicKey: KeyObject): Uint8Array {
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const point = (text: string) => new Uint8Array(Buffer.from(text, 'base64url'));
  const entries: [number, number | Uint8Array][] = [
    [1, 2],
    [3, -7],
    [-1, 1],
    [-2, point(x)],
    [-3, point(y)],
  ];
  return isoCBOR.encode(new Map(entries) as never);
}

/** Returns an authenticator that a page at `origin` uses. */
export function makeFakeAuthenticator(pageOrigin: string): FakeAuthenticator {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const id = randomBytes(16);
  let used = 0;
  let owner = '';

  const clientData = (type: string, question: FakeQuestion, wrong: Wrong) =>
    Buffer.from(
      JSON.stringify({
        type: wrong.type ?? type,
        challenge: wrong.challenge ?? question.challenge,
        origin: wrong.origin ?? pageOrigin,
        crossOrigin: false,
      }),
    );
  const stateOf = (question: FakeQuestion, wrong: Wrong, hasKey: boolean) => {
    const flags = 0x01 | ((wrong.isVerified ?? true) ? 0x04 : 0) | (hasKey ? 0x40 : 0);
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(wrong.counter ?? used);
    const rpId = wrong.rpId ?? question.rpId ?? question.rp?.id ?? '';
    return Buffer.concat([sha256(rpId), Buffer.from([flags]), counter]);
  };
  const credential = { id: base64Url(id), rawId: base64Url(id), type: 'public-key' as const };

  return {
    credentialId: base64Url(id),
    create: (question, wrong = {}) => {
      owner = question.user?.id ?? '';
      const length = Buffer.from([0, id.length]);
      const key = Buffer.concat([Buffer.alloc(16), length, id, coseKeyOf(publicKey)]);
      const authData = new Uint8Array(Buffer.concat([stateOf(question, wrong, true), key]));
      const [format, statement] = wrong.attestation ?? ['none', new Map()];
      const object = new Map<string, unknown>([
        ['fmt', format],
        ['attStmt', statement],
        ['authData', authData],
      ]);
      return {
        ...credential,
        response: {
          clientDataJSON: base64Url(clientData('webauthn.create', question, wrong)),
          attestationObject: base64Url(isoCBOR.encode(object as never)),
          transports: ['internal'],
        },
      };
    },
    use: (question, wrong = {}) => {
      used += 1;
      const data = clientData('webauthn.get', question, wrong);
      const state = stateOf(question, wrong, false);
      const signature = createSign('sha256')
        .update(Buffer.concat([state, sha256(data)]))
        .sign(privateKey);
      return {
        ...credential,
        response: {
          clientDataJSON: base64Url(data),
          authenticatorData: base64Url(state),
          signature: base64Url(signature),
          userHandle: wrong.userHandle ?? owner,
        },
      };
    },
  };
}
