/**
 * Test support: computes the access that each kind of credential has to each route, from the declarations of the routes. Also renders
 * the result as the table in docs/security.md.
 */

import { routes } from '@runyard/contract/routes';
import { isAtLeast, type Role } from '@runyard/contract/wire/access';
import type { Route } from '@runyard/contract/wire/route';

/** The kinds of credentials, each with the name that tests show. */
export const credentials = {
  operator: "the operator's key",
  owner: "an owner's key",
  administrator: "an administrator's key",
  member: "a member's key",
  viewer: "a viewer's key",
  agentKey: 'an agent key',
  session: "a session of the operator's key",
  memberSession: "a member's session",
  viewerSession: "a viewer's session",
  otherTeam: "another team's key",
  otherTeamSession: "another team's session",
  runToken: 'the token of a working run',
  stoppingRunToken: 'the token of a stopping run',
  endedRunToken: 'the token of an ended run',
  workerKey: 'a worker key',
  deletedKey: 'a deleted key',
  expiredKey: 'an expired key',
  unknownKey: 'an unknown key',
  nothing: 'no credential',
  signedUrl: 'a signed URL',
} as const;
export type Credential = keyof typeof credentials;

/** `yes`: the service accepts the call; a number: the status of its refusal. */
export type Access = 'yes' | 401 | 403 | 404 | 409;

/** A row of the table: a route, or a route with a value in the body for which it requires a higher role. */
export interface AccessRow {
  readonly name: string;
  readonly route: Route;
  /** The members of the body because of which the route requires a higher role. */
  readonly body?: Readonly<Record<string, string>>;
}

/** The rows of all routes. The rows of a route for bodies that require a higher role follow directly after the row of the route. */
export const accessRows: readonly AccessRow[] = (Object.entries(routes) as [string, Route][]).flatMap(
  ([name, route]) => {
    const { allow } = route;
    const { member = '', roles = {} } = ('user' in allow && allow.byBody) || {};
    const bodies = Object.entries(roles).map(([value, user]) => ({
      name,
      route: { ...route, allow: { ...allow, user } },
      body: { [member]: value },
    }));
    return [{ name, route }, ...bodies];
  },
);

const roleOf: Readonly<Partial<Record<Credential, Role>>> = {
  operator: 'owner',
  owner: 'owner',
  administrator: 'admin',
  otherTeam: 'admin',
  member: 'member',
  viewer: 'viewer',
  session: 'owner',
  memberSession: 'member',
  viewerSession: 'viewer',
  otherTeamSession: 'admin',
};

/** The credentials that are browser sessions. Each value is the credential of the key with which the session was signed in. */
export const sessionOf: Readonly<Partial<Record<Credential, Credential>>> = {
  session: 'operator',
  memberSession: 'member',
  viewerSession: 'viewer',
  otherTeamSession: 'otherTeam',
};

/** The path of this route names an object by a name that each team chooses. So a caller of another team uses or creates an object of its own team. */
const namedByCaller = routes.putSecret.path;

/** Returns the access of a credential to a route, if the request is about objects of the first team. */
export function accessOf({ allow, params, path }: Route, credential: Credential): Access {
  if ('anyone' in allow) {
    if (allow.anyone === 'always') return 'yes';
    return credential === 'signedUrl' ? 'yes' : 403;
  }
  if ('run' in allow) {
    if (credential === 'runToken') return 'yes';
    if (credential === 'stoppingRunToken') return allow.run === 'until_end' ? 'yes' : 409;
    return 401;
  }
  const role = roleOf[credential];
  if (role) {
    if (!isAtLeast(role, allow.user) || (allow.operator && credential !== 'operator')) return 403;
    if (sessionOf[credential] && allow.session === false) return 403;
    if (allow.operatorTeam && credential.startsWith('otherTeam')) return 403;
    return credential.startsWith('otherTeam') && params && path !== namedByCaller ? 404 : 'yes';
  }
  if (credential === 'agentKey') return allow.agent === true ? 'yes' : 403;
  if ((credential === 'nothing' || credential === 'signedUrl') && allow.keylessBytes) return 'yes';
  return 401;
}

/**
 * Lists of credentials, each in the order of their rights. If a route accepts a credential, it also accepts all later ones of the same
 * list. `permission.test.ts` checks this.
 */
const ladders: readonly (readonly Credential[])[] = [
  ['viewer', 'member', 'administrator', 'owner', 'operator'],
  ['viewerSession', 'memberSession', 'session'],
  ['otherTeam', 'otherTeamSession'],
];

/** Credentials whose keys the service does not find, so the service does not know the caller. */
const notFound: readonly Credential[] = ['deletedKey', 'expiredKey', 'unknownKey'];

/**
 * Returns the credentials with which `bin/test` calls the route of a row, to save time; `bin/test-long` uses all credentials. Of each
 * list, the result contains the strongest refused credential, of one list the weakest accepted one, and of those whose keys are not found,
 * one. It contains all credentials that are in no list. `index`: place of the row in the table.
 */
export function someCredentials({ route }: AccessRow, index: number): Credential[] {
  const isIn = (credential: Credential) => accessOf(route, credential) === 'yes';
  const accepting = ladders.filter((ladder) => ladder.some(isIn));
  const limits = [
    accepting[index % accepting.length]?.find(isIn),
    ...ladders.map((ladder) => ladder.findLast((credential) => !isIn(credential))),
  ];
  const onLadders = new Set(ladders.flat());
  return (Object.keys(credentials) as Credential[]).filter((credential) => {
    if (notFound.includes(credential)) return credential === notFound[index % notFound.length];
    return !onLadders.has(credential) || limits.includes(credential);
  });
}

const cell = (row: AccessRow, credential: Credential): string => {
  const access = accessOf(row.route, credential);
  const isOfCaller = 'user' in row.route.allow && (!row.route.params || row.route.path === namedByCaller);
  return credential.startsWith('otherTeam') && access === 'yes' && isOfCaller ? 'its own' : String(access);
};

/** The columns of the table. Credentials with the same access share a column. */
const columns: readonly { readonly heading: string; readonly of: readonly [Credential, ...Credential[]] }[] = [
  { heading: 'operator', of: ['operator'] },
  { heading: 'owner', of: ['owner'] },
  { heading: 'administrator', of: ['administrator'] },
  { heading: 'member', of: ['member'] },
  { heading: 'viewer', of: ['viewer'] },
  { heading: 'agent key', of: ['agentKey'] },
  { heading: 'session of an owner', of: ['session'] },
  { heading: 'of a member', of: ['memberSession'] },
  { heading: 'of a viewer', of: ['viewerSession'] },
  { heading: "other team's key", of: ['otherTeam'] },
  { heading: "other team's session", of: ['otherTeamSession'] },
  { heading: 'run token: at work', of: ['runToken'] },
  { heading: 'stopping', of: ['stoppingRunToken'] },
  { heading: 'ended', of: ['endedRunToken'] },
  { heading: 'worker, deleted, expired or unknown key', of: ['workerKey', 'deletedKey', 'expiredKey', 'unknownKey'] },
  { heading: 'no key', of: ['nothing'] },
  { heading: 'signed URL', of: ['signedUrl'] },
];

function cellOf(row: AccessRow, of: readonly Credential[]): string {
  const cells = [...new Set(of.map((credential) => cell(row, credential)))];
  if (cells.length !== 1)
    throw new Error(`${row.name} answers ${of.join(', ')} differently: they need columns of their own`);
  return cells.join();
}

const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

/** Returns the table as Markdown. */
export function renderAccessTable(): string {
  const rows = accessRows.map((row) => {
    const { method, path } = row.route;
    const body = Object.entries(row.body ?? {}).map(([member, value]) => ` with \`${member}\` ${value}`);
    return line([`\`${method} ${path}\`${body}`, ...columns.map(({ of }) => cellOf(row, of))]);
  });
  return [
    line(['route', ...columns.map(({ heading }) => heading)]),
    `|---|${'---|'.repeat(columns.length)}`,
    ...rows,
  ].join('\n');
}
