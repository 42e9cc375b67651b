import { useTeamRead } from '../../api/read.ts';

/** Reads the schedules of the team that the person may see, with their last fires. `enabled`: false reads nothing. */
export function useSchedules(enabled = true) {
  return useTeamRead(
    ['schedules'],
    async (client) => (await client.listSchedules({ query: { include: ['fires'] } })).schedules,
    { enabled },
  );
}
