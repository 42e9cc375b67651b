/**
 * Proof of a GitHub App towards GitHub.
 * https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
 */
import { createPrivateKey, type KeyObject, sign } from 'node:crypto';

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Reads the private key of an App. Returns why it cannot be used as a string. */
export function readAppKey(pem: string): KeyObject | string {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    return 'is no private key as PEM. Download one at the settings of the App, and send the whole file';
  }
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  if (key.asymmetricKeyType !== 'rsa' || bits < 2048) return 'must be an RSA key of at least 2048 bits';
  return key;
}

/**
 * Returns a JSON web token of the App, signed with RS256 (RFC 7518, 3.3). It begins a minute ago, because clocks differ, and ends
 * before the ten minutes that GitHub allows. `nowMs`: Unix time in milliseconds.
 */
export function signAppToken(appId: string, key: KeyObject, nowMs: number): string {
  const now = Math.floor(nowMs / 1000);
  const signed = `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ iat: now - 60, exp: now + 540, iss: appId })}`;
  return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), key).toString('base64url')}`;
}
