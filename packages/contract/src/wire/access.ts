/** Permissions of routes: the roles of a team, the kinds of callers, and the declaration in which each route names its callers. */

/** Roles of a team's members, the highest role first. Each role includes the rights of all roles after it. */
export const roles = ['owner', 'admin', 'member', 'viewer'] as const;
export type Role = (typeof roles)[number];

/** Returns true if a member with the role `has` may do an action that needs the role `needed`. */
export const isAtLeast = (has: Role, needed: Role): boolean => roles.indexOf(has) <= roles.indexOf(needed);

/**
 * Kinds of callers. `user`: a person, by a personal key. `agent`: a service account of the team, by an agent key. `run`: an execution that
 * has not ended, by its run token. `worker`: a worker of the operator, with a key that can only connect workers. Self-hosted workers
 * of a team connect with the keys of users and agents. `session`: a person in a browser, by the cookie of a browser session.
 */
export const principalKinds = ['user', 'agent', 'run', 'worker', 'session'] as const;
export type PrincipalKind = (typeof principalKinds)[number];

/** The purposes to which an agent key can be limited. `definition_plans`: checking and planning definitions of factories. */
export const keyLimits = ['definition_plans'] as const;
export type KeyLimit = (typeof keyLimits)[number];

/** Accepts API keys. */
export interface AllowKeys {
  /** The lowest role that a user needs. */
  readonly user: Role;
  /** True: only the key of the operator of the service is accepted. */
  readonly operator?: true;
  /**
   * True: agent keys are accepted too, with the role of a member. `made_by_agents`: only for objects that no person made, because runs
   * execute an object that a person made with the rights of this person.
   */
  readonly agent?: true | 'made_by_agents';
  /**
   * Absent: routes that accept users also accept browser sessions, with the role of the person. A stolen session must not give access
   * that lasts longer than the session. `false`: sessions are refused, because the answer would be another session. `recent`: sessions
   * are accepted only in the first hour after the sign-in, because the answer is a key that is valid longer than the session. The routes
   * of the operator refuse all sessions.
   */
  readonly session?: false | 'recent';
  /** True: only the team of the operator's key is accepted, because the answer is about the whole installation. */
  readonly operatorTeam?: true;
  /** True: the route also accepts keys of workers. */
  readonly worker?: true;
  /** Agent keys that are limited to this purpose are accepted too. All other routes refuse limited keys. */
  readonly limited?: KeyLimit;
  /** A higher role that some requests need. `roles` maps values of the body's member `member` to this role. */
  readonly byBody?: { readonly member: string; readonly roles: Readonly<Record<string, Role>> };
  /** True: the route also accepts a request without a key, if the object that it names is public. */
  readonly publicThings?: true;
  /**
   * Present: the route also accepts a request without a key, with a body of at most this number of bytes. The number of such requests
   * is limited for each address and for all addresses together.
   */
  readonly keylessBytes?: number;
}

/** Accepts run tokens. `at_work`: until the execution begins to stop. `until_end`: until the execution has ended. */
export interface AllowRun {
  readonly run: 'at_work' | 'until_end';
  /** True: the route accepts only runs that may start other runs. */
  readonly startsRuns?: true;
  /** True: the statement of the route that reads or locks the run checks the token again, so the service checks only once per request. */
  readonly checksToken?: true;
}

/** Accepts requests without a credential: all such requests, or only requests with a URL that the service has signed. */
export interface AllowAnyone {
  readonly anyone: 'always' | 'with_signature';
}

/**
 * The callers that a route accepts. In addition, each object that a request names must belong to the team of the caller, or to the run of
 * the token.
 */
export type Allow = AllowKeys | AllowRun | AllowAnyone;

/** For routes that only read: accepts every user of the team, and agent keys. */
export const teamReads = { user: 'viewer', agent: true } as const satisfies Allow;
/** Accepts users with at least the role of a member, and agent keys. */
export const teamWrites = { user: 'member', agent: true } as const satisfies Allow;
/** Accepts users with at least the role of a member. Accepts agent keys only for objects that no person made. */
export const teamEdits = { user: 'member', agent: 'made_by_agents' } as const satisfies Allow;
/** Accepts only the key of the operator of the service. */
export const operatorOnly = { user: 'viewer', operator: true } as const satisfies Allow;
/** Accepts administrators. Refuses agent keys, because a program in a sandbox may have an agent key. */
export const administrators = { user: 'admin' } as const satisfies Allow;

const plural: Readonly<Record<Role, string>> = {
  owner: 'owners',
  admin: 'administrators',
  member: 'members',
  viewer: 'viewers',
};

/** Returns a description of the callers of a route, as the end of a sentence that begins with "Callers: ". */
export function describeAllow(allow: Allow): string {
  if ('run' in allow)
    return allow.run === 'at_work'
      ? 'run token, until the execution is stopping'
      : 'run token, until the execution ends';
  if ('anyone' in allow) return allow.anyone === 'always' ? 'everyone, without a key' : 'everyone with a signed URL';
  if (allow.operator) return "the operator's key";
  if (allow.operatorTeam) {
    const sessions = allow.session === 'recent' ? 'browser sessions in their first hour' : 'browser sessions';
    return `owners of the team of the operator's key, with personal keys and ${sessions}`;
  }
  const users = allow.user === 'viewer' ? 'users of the team' : `users from the role ${allow.user}`;
  const higher = Object.entries(allow.byBody?.roles ?? {}).map(
    ([value, role]) => `${plural[role]} only where ${allow.byBody?.member} is ${value}`,
  );
  return [
    users,
    ...(allow.agent ? [allow.agent === true ? 'agent keys' : 'agent keys for things that no person made'] : []),
    ...(allow.session === undefined ? ['browser sessions'] : []),
    ...(allow.session === 'recent' ? ['browser sessions in their first hour'] : []),
    ...(allow.limited ? [`agent keys that are limited to ${allow.limited}`] : []),
    ...(allow.worker ? ['worker keys'] : []),
    ...(allow.publicThings ? ['everyone for public things'] : []),
    ...(allow.keylessBytes ? [`everyone with at most ${allow.keylessBytes / 1024} KB`] : []),
    ...higher,
  ].join(', ');
}
