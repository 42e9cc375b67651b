/** Error codes of OpenSSL that mean: this machine does not trust the authority that signed the certificate. */
const untrusted: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/**
 * Returns the message about a connection that failed because this machine does not trust the authority of a certificate. Returns undefined
 * if the connection failed for another reason.
 */
export function untrustedCertificate(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return untrusted.has(code)
    ? `its certificate is not trusted (${code}): if your company has signed it, set RUNYARD_CA_FILE to the file of its authority`
    : undefined;
}
