/** Explains codes of system errors in words. Other codes are shown without an explanation. */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  ENOTFOUND: 'the name does not exist',
  EAI_AGAIN: 'the name could not be looked up',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
  ETIMEDOUT: 'connection timed out',
  EPROTO: 'no TLS there',
  ERR_ADDRESS_REFUSED: 'its address is neither public nor in RUNYARD_ALLOW_PRIVATE_NETWORKS',
  ERR_PROXY_TUNNEL: 'the proxy of HTTPS_PROXY opened no connection',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not trusted',
};

/**
 * Returns the code of an error and its meaning, as the text after the words "cannot be reached". Returns an empty text if the error has no
 * code. Does not return the message of the error, because it may contain an address.
 */
export function connectionReason({ code }: NodeJS.ErrnoException): string {
  if (typeof code !== 'string' || !/^[A-Z0-9_]{2,60}$/.test(code)) return '';
  const words = reasons[code];
  return words === undefined ? ` (${code})` : `: ${words} (${code})`;
}
