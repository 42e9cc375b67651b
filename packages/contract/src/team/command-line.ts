/**
 * Signs in the command line with the browser. The command creates a key pair and opens a page of the dashboard with the public key. The
 * page creates an API key and encrypts it with the public key. The encrypted key reaches the command in a request to the command's port
 * on the same machine, or as a text that the person pastes. Only the command can decrypt it.
 */

/** Path of the page. Its query has the members of `CommandLineQuery`. */
export const commandLinePath = '/command-line';

export interface CommandLineQuery {
  /** Public key of the command: SPKI, base64url. */
  readonly key: string;
  /** Name of the machine, for the person who decides. */
  readonly name: string;
  /** Port on 127.0.0.1 on which the command waits. Absent if the person pastes the encrypted key. */
  readonly port?: string;
  /** Random text that the request to the port must contain. */
  readonly state?: string;
}

/** The encryption of the API key. `UID KEY` fits into one block of RSA (RFC 8017, 7.1). */
export const commandLineSeal = { name: 'RSA-OAEP', hash: 'SHA-256', bits: 2048 } as const;

/**
 * Returns the fingerprint of a public key. Command and page both show it, so a person notices the page of another command: its fingerprint
 * differs.
 */
export async function commandLineFingerprint(publicKey: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', publicKey));
  // 32 letters and digits without those that look alike. Each of the 32 occurs equally often.
  const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
  const chars = Array.from(digest.subarray(0, 8), (byte) => alphabet[byte % alphabet.length]);
  return `${chars.slice(0, 4).join('')}-${chars.slice(4).join('')}`;
}

/** The API key of a command line expires after this time. */
export const commandLineKeyLifetime = '90d';
