/**
 * Adds certificate authorities to Node's own list. They are needed for connections to a service or provider whose certificate comes
 * from a company's own authority.
 */
import { readFileSync } from 'node:fs';

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Returns the certificates of a PEM file. Throws an error that names the setting if the file has no certificates. */
export function readAuthorities(file: string): string[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? error.code : error;
    throw new Error(`RUNYARD_CA_FILE: ${file} cannot be read (${reason})`);
  }
  const found = text.match(certificate) ?? [];
  if (found.length === 0) throw new Error(`RUNYARD_CA_FILE: ${file} holds no certificate in PEM`);
  return found;
}

/** Makes this thread trust additional authorities for all its later connections. Throws if a text is not a certificate. */
export function trustAuthorities(certificates: readonly string[]): void {
  // Loads TLS only here, because most programs do not need TLS, and loading it takes time.
  const tls = process.getBuiltinModule('node:tls');
  tls.setDefaultCACertificates([...tls.getCACertificates('default'), ...certificates]);
}

/** Trusts the authorities of RUNYARD_CA_FILE, if it is set. Throws an error that names the setting. */
export function trustCaFile(file: string | undefined): void {
  if (file === undefined) return;
  const certificates = readAuthorities(file);
  try {
    trustAuthorities(certificates);
  } catch (error) {
    throw new Error(`RUNYARD_CA_FILE: ${file} holds a damaged certificate (${(error as Error).message})`);
  }
}
