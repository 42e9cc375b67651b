/**
 * Signing in the command line by the browser. The command makes a key pair and opens a page of the dashboard with the public key. The page
 * makes an API key, encrypts it with the public key, and passes the encrypted key on: in a request to the command's port on the same
 * machine, or as a text that the person pastes. Only the command can decrypt the content of the request's address or of the text.
 */

/** Path of the page. Its query has the members of `CommandLineQuery`. */
export const commandLinePath = '/command-line';

export interface CommandLineQuery {
  /** Public key of the command: SPKI, base64url. */
  readonly key: string;
  /** Name of the machine, for the person who decides. */
  readonly name: string;
  /** Port on 127.0.0.1 on which the command waits; absent: the person pastes the encrypted key. */
  readonly port?: string;
  /** Random text that the request to the port must have. */
  readonly state?: string;
}

/** How the API key is sealed: `UID KEY` fits into one block of RSA (RFC 8017, 7.1). */
export const commandLineSeal = { name: 'RSA-OAEP', hash: 'SHA-256', bits: 2048 } as const;

/**
 * Returns the fingerprint of a public key. Command and page both show it, so a person notices the page of another command: its fingerprint
 * differs.
 */
export async function commandLineFingerprint(publicKey: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', publicKey));
  // Leaves out letters and digits that look alike. Each of the 32 is equally frequent.
  const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
  const chars = Array.from(digest.subarray(0, 8), (byte) => alphabet[byte % alphabet.length]);
  return `${chars.slice(0, 4).join('')}-${chars.slice(4).join('')}`;
}

/** How long the key of a command line lasts. */
export const commandLineKeyLifetime = '90d';
