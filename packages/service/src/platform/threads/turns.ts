/** Bounds of the calls that wait for their turn. */
export interface TurnLimits {
  readonly waiting: number;
  readonly waitingPerTeam: number;
}

/** Runs `work` when it is its turn. `busy`: too many calls wait already, in total or of this team. */
export type Turns = <T>(teamId: string, work: () => Promise<T>) => Promise<T | 'busy'>;

/** Runs one call at a time. Teams take turns, so a team with many calls delays another team by at most one call. */
export function makeTurns(limits: TurnLimits): Turns {
  /** The waiting calls of each team. The team that is next comes first. */
  const waiting = new Map<string, (() => void)[]>();
  let waitingCount = 0;
  let isRunning = false;

  const admitNext = (): void => {
    const [first] = waiting;
    if (first === undefined) {
      isRunning = false;
      return;
    }
    const [teamId, [enter, ...others]] = first;
    waiting.delete(teamId);
    if (others.length > 0) waiting.set(teamId, others);
    waitingCount -= 1;
    enter?.();
  };

  return async (teamId, work) => {
    if (isRunning) {
      const ofTeam = waiting.get(teamId) ?? [];
      if (waitingCount >= limits.waiting || ofTeam.length >= limits.waitingPerTeam) return 'busy';
      waitingCount += 1;
      await new Promise<void>((enter) => waiting.set(teamId, [...ofTeam, enter]));
    }
    isRunning = true;
    try {
      return await work();
    } finally {
      admitNext();
    }
  };
}
