/** Test support: identity providers that answer as the documentation of public providers describes. */
import { clientId, signToken, startIdentityProvider, type TestIdentityProvider } from './identity-provider.ts';

type Claims = Readonly<Record<string, unknown>>;

export interface Persona {
  readonly id: string;
  /** Path of the issuer. */
  readonly path?: string;
  /** Scopes that the provider publishes. Default: the usual ones. */
  readonly published?: readonly string[];
  /** Settings of the provider in the file. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Groups of a member, of a viewer, and of a person whom no rule names, as the rules name them. */
  readonly groups: readonly [member: string, viewer: string, other: string];
  /** Claims of the identity token of a person in these groups. */
  token(groups: readonly string[]): Claims;
  /** Answer of the userinfo endpoint. */
  person(groups: readonly string[]): Claims;
  /** Name and address that the person gets. */
  readonly shown: readonly [name: string, address: string | undefined];
  /** The provider omits the claim if the person is in no group. */
  readonly omitsNone?: true;
  /** Each refresh token works once. */
  readonly rotates?: boolean;
}

const ada = { name: 'Ada Lovelace', given_name: 'Ada', family_name: 'Lovelace' };
const email = 'ada@acme.example';
const withEmail = { ...ada, email, email_verified: true };
const shown = ['Ada Lovelace', email] as const;
const unlessEmpty = (groups: readonly string[], claims: Claims): Claims => (groups.length > 0 ? claims : {});
const tenant = '9188040d-6c67-4c5b-b112-36a304b66dad';
const roles = 'urn:zitadel:iam:org:project:roles';
const inZitadel = (groups: readonly string[]) =>
  unlessEmpty(groups, {
    [roles]: Object.fromEntries(groups.map((group) => [group, { 279812: 'acme.zitadel.example' }])),
  });
const entra = {
  path: `/${tenant}/v2.0`,
  settings: { scopes: ['profile', 'email', 'offline_access'] },
  // Microsoft Graph is the userinfo endpoint, and does not know the groups claim of an application.
  person: () => ada,
  shown: ['Ada Lovelace', undefined],
  omitsNone: true,
} as const;
export const ofEntra = {
  ...ada,
  ver: '2.0',
  tid: tenant,
  oid: '690222be-ff1a-4d56-abd1-7e4f7d38e474',
  preferred_username: email,
};

export const personas: readonly Persona[] = [
  {
    ...entra,
    id: 'entra-groups',
    groups: [
      '3f7a2c5e-0000-4000-8000-000000000001',
      '3f7a2c5e-0000-4000-8000-000000000002',
      '3f7a2c5e-0000-4000-8000-000000000003',
    ],
    token: (groups) => ({ ...ofEntra, ...unlessEmpty(groups, { groups }) }),
  },
  {
    ...entra,
    id: 'entra-roles',
    settings: { ...entra.settings, groups_claim: 'roles' },
    groups: ['Runyard.Member', 'Runyard.Viewer', 'Runyard.Other'],
    token: (groups) => ({ ...ofEntra, ...unlessEmpty(groups, { roles: groups }) }),
  },
  {
    id: 'okta',
    published: ['openid', 'email', 'profile', 'address', 'phone', 'offline_access', 'groups'],
    settings: { scopes: ['profile', 'email', 'groups', 'offline_access'] },
    groups: ['Runyard Makers', 'Runyard Readers', 'Everyone'],
    token: (groups) => ({ ver: 1, idp: '00oixa26ycdNcX0VT0h7', preferred_username: email, groups }),
    person: () => withEmail,
    shown,
  },
  {
    id: 'google',
    published: ['openid', 'email', 'profile'],
    // Google has no groups. The claim hd is the domain of the organization.
    settings: {
      groups_claim: 'hd',
      parameters: { access_type: 'offline', prompt: 'consent' },
      client_auth: 'client_secret_post',
    },
    groups: ['acme.example', 'viewers.acme.example', 'other.example'],
    token: ([hd]) => ({ ...withEmail, ...(hd === undefined ? {} : { hd }) }),
    person: ([hd]) => ({ ...withEmail, ...(hd === undefined ? {} : { hd }) }),
    shown,
    omitsNone: true,
  },
  {
    id: 'zitadel',
    settings: { scopes: ['profile', 'email', 'offline_access', roles], groups_claim: roles },
    groups: ['maker', 'reader', 'other'],
    token: () => ({ aud: [clientId, '279812350000000001'], azp: clientId, preferred_username: email, amr: ['pwd'] }),
    person: (groups) => ({ ...withEmail, ...inZitadel(groups) }),
    shown,
    omitsNone: true,
  },
  {
    id: 'authentik',
    path: '/application/o/runyard/',
    rotates: true,
    groups: ['makers', 'readers', 'authentik Admins'],
    token: (groups) => ({ ...withEmail, preferred_username: 'ada', nickname: 'ada', groups }),
    person: (groups) => ({ ...withEmail, preferred_username: 'ada', nickname: 'ada', groups }),
    shown,
  },
  {
    id: 'keycloak',
    path: '/realms/acme',
    groups: ['/platform/makers', '/platform', '/everyone'],
    token: (groups) => ({ ...withEmail, preferred_username: 'ada', ...unlessEmpty(groups, { groups }) }),
    person: (groups) => ({ ...withEmail, preferred_username: 'ada', ...unlessEmpty(groups, { groups }) }),
    shown,
    omitsNone: true,
  },
];

/** Starts a provider that answers as the persona does. */
export async function startPersona({ path, published, token, person, rotates = false }: Persona) {
  const more = { issueRefreshToken: async () => true, rotateRefreshToken: rotates };
  const provider = await startIdentityProvider('127.0.0.1', { ...(path === undefined ? {} : { path }), more });
  const groupsOf = (subject: unknown) => provider.accounts.get(String(subject))?.groups ?? [];
  const sign = (claims: Claims, own = token) => signToken({ ...claims, ...own(groupsOf(claims.sub)) }, provider.key());
  const answer: TestIdentityProvider['changeAnswer'] = (from, { ...given }) => {
    if (from === 'metadata' && published !== undefined) return { ...given, scopes_supported: published };
    return from === 'person' ? { sub: given.sub, ...person(groupsOf(given.sub)) } : given;
  };
  const reset = () => Object.assign(provider, { changeToken: sign, changeAnswer: answer, trouble: null });
  reset();
  return { provider, sign, answer, reset };
}
