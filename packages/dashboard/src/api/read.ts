import type { Client } from '@runyard/client';
import { type QueryKey, type UseQueryOptions, useQuery } from '@tanstack/react-query';
import { useClient, useSession } from './session.ts';

type Options<T> = Omit<UseQueryOptions<T>, 'queryKey' | 'queryFn'>;

/** Reads something of the service, and keeps the answer under the key. */
export function useRead<T>(queryKey: QueryKey, read: (client: Client) => Promise<T>, options?: Options<T>) {
  const client = useClient();
  return useQuery({ queryKey, queryFn: async () => await read(client), ...options });
}

/** Reads something of the team. The UID of the team is the second part of the key. */
export function useTeamRead<T>(
  [name, ...rest]: readonly [string, ...unknown[]],
  read: (client: Client) => Promise<T>,
  options?: Options<T>,
) {
  const { team } = useSession();
  return useRead([name, team.uid, ...rest], read, options);
}
