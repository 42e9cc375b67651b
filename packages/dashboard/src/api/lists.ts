/** Reads lists of the team that several screens use. */

import type { RunCountsQuery } from '@runyard/contract/runs/run-counts';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useTeamRead } from './read.ts';
import { useClient, useSession } from './session.ts';

interface Page<T> {
  readonly things: readonly T[];
  readonly next: string | undefined;
}

/** Reads all pages of a list. Their number is small, because a team has a limited number of webhooks and automations. */
export async function readAll<T>(read: (cursor: { readonly cursor?: string }) => Promise<Page<T>>): Promise<T[]> {
  const things: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor === undefined ? {} : { cursor });
    things.push(...page.things);
    cursor = page.next;
  } while (cursor !== undefined);
  return things;
}

/** Reads the people of the team, and the rules of single sign-on that manage the members. */
export function useTeamPeople() {
  return useQuery(usePeopleQuery());
}

/** Reads the people of the team. */
export function useMembers() {
  return useQuery({ ...usePeopleQuery(), select: ({ members }) => members });
}

function usePeopleQuery() {
  const client = useClient();
  const { team } = useSession();
  return queryOptions({
    queryKey: ['members', team.uid],
    queryFn: async () => await client.listTeamMembers({ params: { teamUid: team.uid } }),
  });
}

/** Reads the agent identities of the team. */
export function useIdentities() {
  return useTeamRead(['identities'], async (client) => (await client.listAgentIdentities({})).agents);
}

/** Reads the environments that the person may use. */
export function useEnvironments() {
  return useTeamRead(['environments'], async (client) => (await client.listEnvironments({})).environments);
}

/** Reads the factories of the team. */
export function useFactories() {
  return useTeamRead(
    ['factories'],
    async (client) => (await client.listFactories({ query: { limit: 100 } })).factories,
  );
}

/** Reads the stored secrets of the team and the person's own secrets, without their values. */
export function useSecrets() {
  return useTeamRead(['secrets'], async (client) => (await client.listSecrets()).secrets);
}

/** Reads the models that the service knows. */
export function useModels() {
  return useTeamRead(['models'], (client) => client.listModels());
}

/** Reads the team's spending limit and the team's spending this month. Only administrators may read both. */
export function useBudget(isEnabled = true) {
  return useTeamRead(['budget'], (client) => client.getTeamBudget(), { enabled: isEnabled });
}

/** Reads the number of runs of the team that the filters select. */
export function useRunCount(query: Partial<RunCountsQuery>) {
  return useTeamRead(['counts', query], (client) => client.countRuns({ query }));
}

/** Reads the automations that cannot fire, and counts them by the UID of their factory. */
export function useFactoryProblems(): ReadonlyMap<string, number> {
  const client = useClient();
  const { team } = useSession();
  const { data } = useQuery({
    queryKey: ['factories', team.uid, 'problems'],
    queryFn: () =>
      readAll(async (cursor) => {
        const page = await client.listTeamAutomations({ query: { limit: 100, ...cursor } });
        return { things: page.automations, next: page.page_info.next_cursor };
      }),
    staleTime: 60_000,
  });
  const counts = new Map<string, number>();
  for (const { factory_uid: uid, problems = [] } of data ?? [])
    if (problems.length > 0) counts.set(uid, (counts.get(uid) ?? 0) + 1);
  return counts;
}
