/** Permissions of routes: the roles of a team, the kinds of callers, and the declaration that each route carries. */

/** Roles of a team's members; each may do what the ones behind it may. */
export const roles = ['owner', 'admin', 'member', 'viewer'] as const;
export type Role = (typeof roles)[number];

/** Returns whether a member with the role `has` may do what needs the role `needed`. */
export const isAtLeast = (has: Role, needed: Role): boolean => roles.indexOf(has) <= roles.indexOf(needed);

/**
 * Kinds of callers. `user`: a person, by a personal key. `agent`: a service account of the team, by an agent key. `run`: an
 * execution that has not ended, by its run token. `worker`: a self-hosted worker, by a key that only connects one; no key
 * is of this kind yet, and workers connect with the keys of users and agents. `session`: a person in a browser, by the key of a
 * browser session, which opens only what a run's page needs.
 */
export const principalKinds = ['user', 'agent', 'run', 'worker', 'session'] as const;
export type PrincipalKind = (typeof principalKinds)[number];

/** Admits API keys. */
export interface AllowKeys {
  /** The lowest role that a user needs. */
  readonly user: Role;
  /** True: only the key of the operator of the service is admitted. */
  readonly operator?: true;
  /** True: agent keys are admitted too, with the role of a member. */
  readonly agent?: true;
  /** True: browser sessions are admitted too, with the role of their user. */
  readonly session?: true;
  /** True: keys of workers are admitted too. */
  readonly worker?: true;
  /** A higher role that some bodies need: `roles` has it for values of the member `member` of the body. */
  readonly byBody?: { readonly member: string; readonly roles: Readonly<Record<string, Role>> };
  /** True: a request without a key is admitted to things that are public. */
  readonly publicThings?: true;
}

/** Admits run tokens: of an execution that is at work, or until its end, also while it is stopping. */
export interface AllowRun {
  readonly run: 'at_work' | 'until_end';
}

/** Admits a request without a credential: any, or one whose URL the service has signed. */
export interface AllowAnyone {
  readonly anyone: 'always' | 'with_signature';
}

/** The callers that a route admits. Each thing that a route names must also be of the caller's team, or of its run. */
export type Allow = AllowKeys | AllowRun | AllowAnyone;

/** Admits every user of the team, and agent keys: for what only reads. */
export const teamReads = { user: 'viewer', agent: true } as const satisfies Allow;
/** Admits users from the role of a member, and agent keys. */
export const teamWrites = { user: 'member', agent: true } as const satisfies Allow;
/** The same for what a run's page reads and does. */
export const runPageReads = { ...teamReads, session: true } as const satisfies Allow;
export const runPageWrites = { ...teamWrites, session: true } as const satisfies Allow;
/** Admits the operator of the service, who made the installation. */
export const operatorOnly = { user: 'viewer', operator: true } as const satisfies Allow;
/** Admits administrators. Agent keys are refused: what runs in a sandbox may hold one. */
export const administrators = { user: 'admin' } as const satisfies Allow;

const plural: Readonly<Record<Role, string>> = {
  owner: 'owners',
  admin: 'administrators',
  member: 'members',
  viewer: 'viewers',
};

/** Returns who may call a route, as the end of a sentence that begins with "Callers: ". */
export function describeAllow(allow: Allow): string {
  if ('run' in allow)
    return allow.run === 'at_work'
      ? 'run token, until the execution is stopping'
      : 'run token, until the execution ends';
  if ('anyone' in allow) return allow.anyone === 'always' ? 'everyone, without a key' : 'everyone with a signed URL';
  if (allow.operator) return "the operator's key";
  const users = allow.user === 'viewer' ? 'users of the team' : `users from the role ${allow.user}`;
  const higher = Object.entries(allow.byBody?.roles ?? {}).map(
    ([value, role]) => `${plural[role]} only where ${allow.byBody?.member} is ${value}`,
  );
  return [
    users,
    ...(allow.agent ? ['agent keys'] : []),
    ...(allow.session ? ['browser sessions'] : []),
    ...(allow.worker ? ['worker keys'] : []),
    ...(allow.publicThings ? ['everyone for public things'] : []),
    ...higher,
  ].join(', ');
}
