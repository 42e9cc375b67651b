import { useQuery } from '@tanstack/react-query';
import { useClient, useSession } from '../../api/session.ts';

/** Reads the schedules of the team that the person may see, with their last fires. `enabled`: false reads nothing. */
export function useSchedules(enabled = true) {
  const client = useClient();
  const { team } = useSession();
  return useQuery({
    queryKey: ['schedules', team.uid],
    queryFn: async () => (await client.listSchedules({ query: { include: ['fires'] } })).schedules,
    enabled,
  });
}
