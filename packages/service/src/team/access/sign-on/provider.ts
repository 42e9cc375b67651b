/** Sends requests to an identity provider: OpenID Connect with the authorization code flow, PKCE, state and nonce. */
import type { Logger } from 'pino';
import { describeAnswer, describeFault } from './describe-fault.ts';
import { type Groups, groupsIn } from './groups.ts';
import { isSafeUrl, type ProviderConfig, usualScopes } from './sign-on-file.ts';

type Library = typeof import('openid-client');
type Configuration = import('openid-client').Configuration;

/** The values that bind the answer of the provider to the browser that began the sign-in. */
export interface Checks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** A person, as the provider describes it now. */
export interface ProvidedPerson {
  readonly subject: string;
  readonly displayName: string;
  readonly email: string | null;
  readonly groups: Groups;
  /** Absent if the provider returned no refresh token. */
  readonly refreshToken?: string;
}

/**
 * Answer of a provider about a person. `refused`: the provider does not confirm the person. `invalid`: the answer is not valid, or is meant
 * for another browser or service. `unavailable`: the provider does not answer, or answers with an error that is not about the person.
 */
export type Answer = { readonly kind: 'person'; readonly person: ProvidedPerson } | Failure;

interface Failure {
  readonly kind: 'refused' | 'invalid' | 'unavailable';
  readonly reason: string;
  /** The token was not sent to the provider. */
  readonly isUnsent?: true;
  /** The fault lasts until the operator changes a setting. `reason` then has the values that differ. */
  readonly isSetting?: true;
}

export interface Provider {
  readonly id: string;
  readonly name: string;
  readonly issuer: string;
  /** Returns the address at which the person signs in. */
  authorizationUrl(
    checks: Checks,
    redirectUri: string,
  ): Promise<{ readonly kind: 'url'; readonly url: string } | Failure>;
  /** Reads the metadata that the provider publishes now. Returns the reason if people cannot sign in with them; null if they can. */
  check(): Promise<string | null>;
  /** Requests the person's data with a code. The code is in the query of the address to which the provider has sent the browser back. */
  exchange(redirectUri: string, query: string, checks: Checks): Promise<Answer>;
  /** Requests the person's data again with the refresh token. */
  refresh(refreshToken: string, subject: string): Promise<Answer>;
}

/** Time in milliseconds for which the published metadata of a provider is cached. */
const metadataMs = 10 * 60_000;

/** Errors of the token endpoint that mean that the provider refuses a person (RFC 6749 5.2, OpenID Connect Core 3.1.2.6). */
const refusals = new Set([
  'invalid_grant',
  'access_denied',
  'login_required',
  'interaction_required',
  'consent_required',
]);

/** Error codes of the library for answers that fail a check of signature, issuer, audience, time, nonce, state or subject. */
const failedChecks = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
]);

const isPlain = ({ issuer }: ProviderConfig): boolean => issuer.startsWith('http:');

function authentication(library: Library, { client_secret: secret, client_auth: method }: ProviderConfig) {
  if (secret === undefined) return library.None();
  return method === 'client_secret_post' ? library.ClientSecretPost(secret) : library.ClientSecretBasic(secret);
}

/** Requests the metadata that the provider publishes. */
async function readMetadata(library: Library, config: ProviderConfig): Promise<ServerMetadata> {
  const { issuer, client_id: clientId, timeout_seconds: timeout } = config;
  const found = await library.discovery(new URL(issuer), clientId, undefined, authentication(library, config), {
    timeout,
    ...(isPlain(config) ? { execute: [library.allowInsecureRequests] } : {}),
  });
  return JSON.parse(JSON.stringify(found.serverMetadata())) as ServerMetadata;
}

/**
 * Returns a library configuration for one sign-in answer. Each configuration reads the keys of the provider again, so that new keys are
 * used at once.
 */
function makeConfiguration(library: Library, config: ProviderConfig, metadata: ServerMetadata): Configuration {
  const made = new library.Configuration(
    metadata,
    config.client_id,
    { [library.clockTolerance]: config.clock_tolerance_seconds },
    authentication(library, config),
  );
  if (isPlain(config)) library.allowInsecureRequests(made);
  // Check the signature of the token too, although it comes over TLS from the provider itself.
  library.enableNonRepudiationChecks(made);
  // This deadline applies to all requests for one answer together.
  const deadline = AbortSignal.timeout(config.timeout_seconds * 1000);
  made[library.customFetch] = async (url, { signal, ...options }) =>
    await fetch(url, {
      ...(options as RequestInit),
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
    });
  return made;
}

/** Reads the person's data from the identity token, and data that is missing there from the userinfo endpoint. */
async function personOf(
  library: Library,
  { groups_claim: groupsClaim }: ProviderConfig,
  configuration: Configuration,
  tokens: Tokens,
  subject: string,
): Promise<Answer> {
  const claims = tokens.claims();
  if (claims !== undefined && claims.sub !== subject) return { kind: 'invalid', reason: 'it is about another person' };
  const hasAll = claims !== undefined && groupsIn(claims, groupsClaim).kind === 'groups' && 'name' in claims;
  const asks = !hasAll && configuration.serverMetadata().userinfo_endpoint !== undefined;
  if (claims === undefined && !asks) return { kind: 'unavailable', reason: 'it has no data about the person' };
  const more = asks ? await library.fetchUserInfo(configuration, tokens.access_token, subject) : {};
  const allClaims: Record<string, unknown> = { ...more, ...claims };
  return {
    kind: 'person',
    person: {
      subject,
      displayName: displayNameOf(allClaims),
      email: typeof allClaims.email === 'string' && allClaims.email.length <= 320 ? printable(allClaims.email) : null,
      groups: groupsIn(allClaims, groupsClaim),
      ...(tokens.refresh_token === undefined ? {} : { refreshToken: tokens.refresh_token }),
    },
  };
}

/** Creates a provider from its entry in the file. Sends no request. */
export function makeProvider(library: Library, config: ProviderConfig, log: Pick<Logger, 'warn'>): Provider {
  const { id, name, issuer } = config;
  let known: { readonly at: number; readonly metadata: Promise<ServerMetadata> } | undefined;

  const discover = () => readMetadata(library, config);

  /** Returns the published metadata of the provider, at most ten minutes old. A failure is not cached. */
  const metadata = async (): Promise<ServerMetadata> => {
    if (known && performance.now() - known.at < metadataMs) return await known.metadata;
    const entry = { at: performance.now(), metadata: discover() };
    known = entry;
    entry.metadata.catch(() => {
      if (known === entry) known = undefined;
    });
    return await entry.metadata;
  };

  const configure = async (): Promise<Configuration> => makeConfiguration(library, config, await metadata());

  const answer = async (work: (configuration: Configuration) => Promise<Answer>): Promise<Answer> => {
    let configuration: Configuration | undefined;
    try {
      configuration = await configure();
      return await work(configuration);
    } catch (error) {
      const failure: Failure = {
        ...failureOf(library, error),
        ...(configuration === undefined ? { isUnsent: true } : {}),
      };
      log.warn(
        { provider: id, err: error, outcome: failure.kind, reason: failure.reason },
        'an answer of an identity provider was not accepted',
      );
      return failure;
    }
  };

  return {
    id,
    name,
    issuer,
    authorizationUrl: async (checks, redirectUri) => {
      try {
        const configuration = await configure();
        const known = configuration.serverMetadata().scopes_supported;
        // Some providers refuse a sign-in with a scope that they do not know, such as offline_access.
        const scopes = config.scopes ?? usualScopes.filter((scope) => known?.includes(scope) !== false);
        const url = library.buildAuthorizationUrl(configuration, {
          ...config.parameters,
          scope: [...new Set(['openid', ...scopes])].join(' '),
          redirect_uri: redirectUri,
          state: checks.state,
          nonce: checks.nonce,
          code_challenge: await library.calculatePKCECodeChallenge(checks.verifier),
          code_challenge_method: 'S256',
        });
        if (isSafeUrl(url.href)) return { kind: 'url', url: url.href };
        return { kind: 'unavailable', reason: 'its address for sign-ins has no TLS', isSetting: true };
      } catch (error) {
        const failure = failureOf(library, error);
        log.warn({ provider: id, err: error, reason: failure.reason }, 'an identity provider does not answer');
        return failure;
      }
    },
    check: async () => {
      try {
        const found = await discover();
        known = { at: performance.now(), metadata: Promise.resolve(found) };
        const { authorization_endpoint: address = '' } = found;
        return isSafeUrl(address) ? null : 'it publishes no authorization_endpoint with TLS';
      } catch (error) {
        return failureOf(library, error).reason;
      }
    },
    exchange: async (redirectUri, query, { state, nonce, verifier }) =>
      await answer(async (configuration) => {
        const tokens = await library.authorizationCodeGrant(configuration, new URL(`${redirectUri}?${query}`), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const subject = tokens.claims()?.sub ?? '';
        if (subject === '' || subject.length > 255)
          return { kind: 'invalid', reason: 'the subject is not a valid identifier' };
        return await personOf(library, config, configuration, tokens, subject);
      }),
    refresh: async (refreshToken, subject) =>
      await answer(async (configuration) => {
        const tokens = await library.refreshTokenGrant(configuration, refreshToken);
        return await personOf(library, config, configuration, tokens, subject);
      }),
  };
}

type ServerMetadata = import('openid-client').ServerMetadata;
type Tokens = import('openid-client').TokenEndpointResponse & import('openid-client').TokenEndpointResponseHelpers;

function failureOf(library: Library, error: unknown): Failure {
  const code = error instanceof library.ResponseBodyError ? error.error : undefined;
  const setting = describeFault(error, code);
  if (setting !== undefined)
    return { kind: code === undefined ? 'invalid' : 'unavailable', reason: setting, isSetting: true };
  if (error instanceof library.AuthorizationResponseError || error instanceof library.ResponseBodyError) {
    const kind = refusals.has(error.error) ? 'refused' : 'unavailable';
    // Anyone can write the description in the address to which a browser returns. So only the description from the provider itself counts.
    const description = error instanceof library.ResponseBodyError ? error.error_description : undefined;
    return { kind, reason: printable(description ? `${error.error}: ${description}` : error.error) };
  }
  if (error instanceof library.ClientError && failedChecks.has(error.code ?? ''))
    return { kind: 'invalid', reason: error.message };
  const reason = describeAnswer(error) ?? (error instanceof Error ? error.message : 'no answer');
  return { kind: 'unavailable', reason };
}

/** Returns text of the provider for one line, without control characters and with at most 200 characters. */
const printable = (text: string): string =>
  text
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim()
    .slice(0, 200);

function displayNameOf(claims: Readonly<Record<string, unknown>>): string {
  const names = [claims.name, claims.preferred_username, claims.email, claims.sub];
  const printableNames = names.map((name) => (typeof name === 'string' ? printable(name) : ''));
  return printableNames.find((name) => name !== '') ?? 'Unnamed';
}
