/** Codes of OpenSSL for a certificate with an authority that is unknown here. */
const untrusted: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Returns the sentence for a connection that failed because the authority of a certificate is unknown here; undefined: another reason. */
export function untrustedCertificate(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return untrusted.has(code)
    ? `its certificate is not trusted (${code}): if your company has signed it, set RUNYARD_CA_FILE to the file of its authority`
    : undefined;
}
