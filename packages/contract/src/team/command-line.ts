/**
 * Signs in the command line with the browser. The command creates a key pair and opens a page of the dashboard with the public key. The
 * page creates an API key and encrypts it with the public key. The command gets the encrypted API key in a request to its port on the
 * same machine, or as a text that the person pastes. Only the command can decrypt the key.
 */

/** Path of the page. Its query has the members of `CommandLineQuery`. */
export const commandLinePath = '/command-line';

export interface CommandLineQuery {
  /** Public key of the command: SPKI, base64url. */
  readonly key: string;
  /** Name of the machine. The page shows it to the person who decides about the sign-in. */
  readonly name: string;
  /** Port on 127.0.0.1 on which the command waits. Absent if the person pastes the encrypted key. */
  readonly port?: string;
  /** Random text that the request to the port must contain. */
  readonly state?: string;
}

/** The encryption of the API key. The plain text `UID KEY` fits into one block of RSA (RFC 8017, 7.1). */
export const commandLineSeal = { name: 'RSA-OAEP', hash: 'SHA-256', bits: 2048 } as const;

/**
 * Returns the fingerprint of a public key. The command and the page both show this fingerprint. If the page belongs to another
 * command, the fingerprints differ, and the person notices this.
 */
export async function commandLineFingerprint(publicKey: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', publicKey));
  // 32 letters and digits that do not look alike. Because 32 is a power of two, each of them occurs equally often.
  const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
  const chars = Array.from(digest.subarray(0, 8), (byte) => alphabet[byte % alphabet.length]);
  return `${chars.slice(0, 4).join('')}-${chars.slice(4).join('')}`;
}

/** The API key of a command line expires after this time. */
export const commandLineKeyLifetime = '90d';
