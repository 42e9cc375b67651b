/** Holds the configuration of single sign-on that the operator has set. */
import type { TeamRule } from '@runyard/contract/team/teams';
import type { Logger } from 'pino';
import { makeProvider, type Provider } from './provider.ts';
import { readSignOnFile, type TeamRules } from './sign-on-file.ts';

export interface SignOn {
  /** The providers in the order of the file; an empty list means that single sign-on is off. */
  readonly providers: readonly Provider[];
  /** The teams that rules manage. */
  readonly teams: readonly TeamRules[];
  readonly refreshMinutes: number;
  readonly unconfirmedHours: number;
  /** The secrets with which the service authenticates at the providers. */
  readonly secrets: readonly string[];
  /** Returns whether rules manage the team with this UID. People of other teams are managed by hand. */
  isManagedByRules(teamUid: string): boolean;
  /** Returns the rules that manage the team with this UID; undefined if people manage the team by hand. */
  rulesOf(teamUid: string): TeamRule[] | undefined;
}

const none: SignOn = {
  providers: [],
  teams: [],
  refreshMinutes: 15,
  unconfirmedHours: 24,
  secrets: [],
  isManagedByRules: () => false,
  rulesOf: () => undefined,
};

/** Reads the file of RUNYARD_OIDC_FILE; without a file, single sign-on is off. Sends nothing to the providers. */
export async function openSignOn(
  file: string | undefined,
  log: Pick<Logger, 'warn'>,
): Promise<{ readonly ok: true; readonly signOn: SignOn } | { readonly ok: false; readonly problems: string[] }> {
  if (file === undefined) return { ok: true, signOn: none };
  const read = await readSignOnFile(file);
  if (!read.ok) return read;
  // Load the library only here, so that a service without single sign-on does not load it.
  const library = await import('openid-client');
  const { providers, teams, refresh_minutes: refreshMinutes, unconfirmed_hours: unconfirmedHours } = read.value;
  const nameOf = new Map(providers.map(({ id, name }) => [id, name]));
  const managed = new Map(
    teams.map(({ team, rules }) => [
      team,
      rules.map(({ provider, group, role }) => ({ provider: nameOf.get(provider) ?? provider, group, role })),
    ]),
  );
  return {
    ok: true,
    signOn: {
      providers: providers.map((provider) => makeProvider(library, provider, log)),
      teams,
      refreshMinutes,
      unconfirmedHours,
      secrets: providers.flatMap(({ client_secret: secret }) => secret ?? []),
      isManagedByRules: (teamUid) => managed.has(teamUid),
      rulesOf: (teamUid) => managed.get(teamUid),
    },
  };
}
