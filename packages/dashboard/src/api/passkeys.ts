/** Asks the browser to make and to use passkeys. The library is loaded with the first passkey. */
import type { InvitedWithPasskey, PasskeyAnswer, PasskeyRegistration } from '@runyard/contract/team/passkeys';
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/browser';
import { PlainFailure } from './problem.ts';
import { clientOf } from './session.ts';

/** A question of the service for the authenticator. */
interface Asked {
  /** The address of the service to which its passkeys belong. */
  readonly origin: string;
  readonly options: Readonly<Record<string, unknown>>;
}

const library = () => import('@simplewebauthn/browser');

/** Returns whether this browser has passkeys on this page. Browsers offer passkeys only over TLS and on this machine. */
export const hasPasskeys = (): boolean => typeof PublicKeyCredential === 'function';

/** Returns whether this page can make passkeys. They belong to a host name, so a page at an IP address cannot. */
export const canMakePasskeys = (): boolean => hasPasskeys() && !/^\[|^[\d.]+$/.test(location.hostname);

/** Makes a passkey. @throws PlainFailure */
export async function makePasskey(ask: () => Promise<Asked>): Promise<PasskeyRegistration> {
  const options = (await askHere(ask)) as unknown as PublicKeyCredentialCreationOptionsJSON;
  const { startRegistration } = await library();
  const { id, rawId, type, response } = await explained(() => startRegistration({ optionsJSON: options }));
  const { clientDataJSON, attestationObject, transports } = response;
  return {
    id,
    rawId,
    type,
    response: { clientDataJSON, attestationObject, ...(transports === undefined ? {} : { transports }) },
  };
}

/** Lets the person choose and use a passkey. Returns the proof for the sign-in. @throws PlainFailure */
export async function proveByPasskey(): Promise<{ readonly passkey: PasskeyAnswer }> {
  const options = (await askHere(() =>
    clientOf('').startPasskeySignIn(),
  )) as unknown as PublicKeyCredentialRequestOptionsJSON;
  const { startAuthentication } = await library();
  const { id, rawId, type, response } = await explained(() => startAuthentication({ optionsJSON: options }));
  const { clientDataJSON, authenticatorData, signature, userHandle } = response;
  const handle = userHandle === undefined ? {} : { userHandle };
  return { passkey: { id, rawId, type, response: { clientDataJSON, authenticatorData, signature, ...handle } } };
}

/** Makes a passkey for a new person. Returns the proof with which the person accepts the invitation. @throws PlainFailure */
export async function joinWithPasskey(
  key: string,
  displayName: string,
): Promise<{ readonly invitation: InvitedWithPasskey }> {
  const person = { key, display_name: displayName };
  const passkey = await makePasskey(() => clientOf('').startInvitedPasskey({ body: person }));
  return { invitation: { ...person, name: nameOfBrowser(), passkey } };
}

async function askHere(ask: () => Promise<Asked>): Promise<Asked['options']> {
  const { origin, options } = await ask();
  if (origin !== location.origin)
    throw new PlainFailure(`The passkeys of this service belong to ${origin}. Open this page at that address.`);
  return options;
}

async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (failure) {
    const { name, message } = failure as Error;
    if (name === 'NotAllowedError' || name === 'AbortError')
      throw new PlainFailure('No passkey was used: you cancelled the request, or it timed out.');
    if (name === 'InvalidStateError') throw new PlainFailure('This device has a passkey for you already.');
    throw new PlainFailure(`This browser cannot use a passkey here: ${message}`);
  }
}

const firstOf = (names: readonly string[]): string => names.find((name) => navigator.userAgent.includes(name)) ?? '';
const calledDifferently: Readonly<Record<string, string>> = { Edg: 'Edge', Macintosh: 'Mac' };

/** Returns a name for a passkey of this browser, such as “Firefox on Linux”. */
export function nameOfBrowser(): string {
  const parts = [
    firstOf(['Edg', 'Firefox', 'Chrome', 'Safari']),
    firstOf(['iPhone', 'iPad', 'Android', 'Windows', 'Macintosh', 'Linux']),
  ];
  const words = parts.filter((part) => part !== '').map((part) => calledDifferently[part] ?? part);
  return words.join(' on ') || 'Passkey';
}
