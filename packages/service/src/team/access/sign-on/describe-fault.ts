/** Describes faults of an identity provider or of its entry in the file, with the values that differ. */

/** Members of the causes of errors in the library `oauth4webapi`. */
interface Details {
  readonly expected?: unknown;
  readonly attribute?: unknown;
  readonly body?: { readonly issuer?: unknown };
  readonly claim?: unknown;
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: { readonly alg?: unknown };
  readonly alg?: unknown;
  readonly now?: unknown;
}

/** Returns the details in an error or its causes; an empty object if there are none. */
function detailsOf(error: unknown): Details {
  let at: unknown = error;
  for (let depth = 0; depth < 4 && typeof at === 'object' && at !== null; depth += 1) {
    if ('expected' in at || 'claims' in at || 'header' in at || 'alg' in at) return at as Details;
    at = (at as { cause?: unknown }).cause;
  }
  return {};
}

const shown = (value: unknown): string =>
  (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing')).slice(0, 300);

const withoutSlash = (value: unknown): string => shown(value).replace(/\/$/, '');

/** Describes an answer that is neither a success nor an error of OAuth; undefined for other faults. */
export function describeAnswer(error: unknown): string | undefined {
  const { cause } = error instanceof Error ? error : {};
  return cause instanceof Response ? `${cause.url.split('?')[0]} answers ${cause.status}` : undefined;
}

/**
 * Returns a sentence about a fault that lasts until the operator changes a setting here or at the provider; undefined for other faults.
 * `code`: the error code that the provider sent, if it sent one.
 */
export function describeFault(error: unknown, code?: string): string | undefined {
  if (code === 'invalid_client' || code === 'unauthorized_client')
    return `the provider refuses the client (${code}): compare client_id, client_secret and client_auth with the provider`;
  if (code === 'invalid_scope')
    return 'the provider does not know one of the scopes: set `scopes` to scopes that it publishes';
  if (code === 'not_allowed')
    return 'the provider allows no offline tokens (not_allowed): give the people of Keycloak the role offline_access, or set `scopes` without offline_access';
  const answer = describeAnswer(error);
  if (answer?.endsWith('/.well-known/openid-configuration answers 404'))
    return `${answer}: correct \`issuer\`, for example the name of the realm or tenant in it`;
  const { expected, attribute, body, claim, claims, header, alg, now } = detailsOf(error);
  if (attribute === 'issuer') {
    const published = shown(body?.issuer);
    if (published.includes('{tenantid}'))
      return `the provider publishes the issuer ${published}: write the id of the tenant in place of {tenantid}, and set \`issuer\` to the result`;
    return `the file has the issuer ${withoutSlash(expected)}, and the provider publishes ${published}: set \`issuer\` to exactly this text, also regarding a slash at the end`;
  }
  if (claim === 'iss')
    return `the token has the issuer ${shown(claims?.iss)}, and the provider publishes ${shown(expected)}`;
  if (claim === 'aud' || claim === 'azp')
    return `the token is for the client ${shown(claims?.[claim])}, and the file has the client_id ${shown(expected)}`;
  const used = expected === undefined ? alg : header?.alg;
  if (used !== undefined)
    return `the token is signed with ${shown(used)}: configure the provider to sign with a key that it publishes, for example with RS256`;
  if (now !== undefined && typeof claim === 'string')
    return `the token has ${claim} ${shown(claims?.[claim])}, and this machine has the time ${shown(now)}: correct the clocks, or set clock_tolerance_seconds`;
  return undefined;
}
