/** Browser sessions, which begin with a one-time link or an API key. */
import { z } from 'zod';
import { Text, Timestamp } from '../wire/primitives.ts';
import { UserProfile } from '../wire/profiles.ts';
import { InvitedWithPasskey, PasskeyAnswer } from './passkeys.ts';
import { Team } from './teams.ts';

/** The code in a sign-in link expires after this number of seconds. */
export const signInCodeSeconds = 60;
/** Longest life of a browser session. */
export const browserSessionHours = 8;

/** The text before the code in the fragment of a page's address. Browsers do not send the fragment to a server. */
export const signInFragment = 'sign-in=';

/**
 * Name of the session's cookie. Because of the prefix `__Host-`, browsers accept this cookie only over TLS and only for the host that
 * sets it (RFC 6265bis, 4.1.3.2).
 */
export const sessionCookie = '__Host-runyard';

export const CreateSignInCodeResponse = z
  .object({
    code: z.string().meta({
      description: `Code for the fragment of a page's address: \`/runs/RUN_ID#${signInFragment}CODE\``,
    }),
    expires_at: Timestamp.meta({ description: `${signInCodeSeconds} s after it was made` }),
  })
  .meta({ id: 'CreateSignInCodeResponse', description: 'A code that signs in one browser, once' });
export type CreateSignInCodeResponse = z.infer<typeof CreateSignInCodeResponse>;

const SignInCode = z.string().regex(/^[A-Za-z0-9_-]{43}$/, { error: 'is not a code of a sign-in link' });

export const ReadSignInCodeRequest = z
  .object({ code: SignInCode.meta({ description: "Code from the fragment of the page's address" }) })
  .meta({ id: 'ReadSignInCodeRequest', description: 'The code of a sign-in link' });

export const SignInCodeOwner = z
  .object({
    display_name: z.string().meta({ description: 'The person for whom the session would act' }),
    team_name: z.string().meta({ description: 'The team that the session would show first' }),
  })
  .meta({ id: 'SignInCodeOwner', description: 'The person whom a sign-in link signs in' });

const signInProofs = ['code', 'api_key', 'sign_on', 'passkey', 'invitation'] as const;

export const CreateBrowserSessionRequest = z
  .object({
    code: SignInCode.optional().meta({ description: "Code from the fragment of the page's address" }),
    api_key: Text.min(1).max(300).optional().meta({ description: 'API key of a person' }),
    sign_on: Text.min(1).max(8192).optional().meta({
      description:
        'Query of the address `/sign-in` to which an identity provider sent the browser back, without `?`. It must be the same browser in which POST /sign-on began',
    }),
    passkey: PasskeyAnswer.optional(),
    invitation: InvitedWithPasskey.optional(),
  })
  .refine((body) => signInProofs.filter((each) => body[each] !== undefined).length === 1, {
    error: `must have exactly one of ${signInProofs.join(', ')}`,
  })
  .meta({
    id: 'CreateBrowserSessionRequest',
    description:
      'The proof that signs in a browser: the code of a link, an API key, which is not stored, the answer of an identity provider, a passkey, or an invitation that a new person accepts with a new passkey',
    allOf: [{ oneOf: signInProofs.map((each) => ({ required: [each] })) }],
  });
export type CreateBrowserSessionRequest = z.infer<typeof CreateBrowserSessionRequest>;

const expiresAt = Timestamp.meta({
  description: `At most ${browserSessionHours} hours after the sign-in, and not later than the end of the key that made it`,
});

export const BrowserSession = z
  .object({
    uid: z.string().meta({ description: 'UID of the session, as in the list of API keys and in GET /session' }),
    expires_at: expiresAt,
    display_name: z.string().meta({ description: 'The person for whom the session acts' }),
    next: z.string().optional().meta({
      description: 'Path that the page of the sign-in was to open afterwards, as POST /sign-on got it',
    }),
  })
  .meta({ id: 'BrowserSession', description: "A browser session. The session's key is only in the cookie" });
export type BrowserSession = z.infer<typeof BrowserSession>;

const SessionKind = z.enum(['session', 'user']).meta({
  id: 'SessionKind',
  description: '`session`: a browser is signed in. `user`: the request has a personal key',
});

const RequestScheme = z
  .enum(['http', 'https'])
  .meta({ id: 'RequestScheme', description: 'Scheme of a request, as the client sent it' });

export const SessionClient = z
  .object({
    address: z.string().describe('IP address of the client'),
    scheme: RequestScheme,
    host: z.string().optional().describe('Host name that the client asked, and its port where it named one'),
    undeclared_proxy: z
      .string()
      .optional()
      .describe(
        'Address of a proxy that sent `X-Forwarded-For` and is not in `RUNYARD_TRUSTED_PROXIES`: `address` is then the address of the proxy',
      ),
  })
  .meta({ id: 'SessionClient', description: 'The client of a request, as the service sees it' });

export const Session = z
  .object({
    kind: SessionKind,
    uid: z.string().describe('UID of the session or the key, as in the list of API keys'),
    user: UserProfile.describe('The person who is signed in'),
    teams: z.array(Team).describe('Teams of the person, oldest first. `is_current`: the team of this request'),
    csrf_token: z.string().optional().meta({
      description:
        'For the header `X-CSRF-Token` of requests that change something. Absent: the caller sent an API key',
    }),
    expires_at: expiresAt.optional(),
    base_url: z.string().describe('URL at which clients reach the service, without `/api/v1`'),
    client: SessionClient.describe('The client of this request'),
    code_host: z
      .string()
      .optional()
      .describe('Host of all repositories, such as github.com; absent: the host differs between owners'),
    reads_installation: z.literal(true).optional().describe('Present: the caller may read GET /installation'),
  })
  .meta({ id: 'Session', description: 'The signed-in person' });
export type Session = z.infer<typeof Session>;
