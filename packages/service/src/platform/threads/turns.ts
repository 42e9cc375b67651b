/** Largest number of calls that may wait: of all teams together, and of one team. */
export interface TurnLimits {
  readonly waiting: number;
  readonly waitingPerTeam: number;
}

/** Waits until it is the turn of this call, and runs `work`. Returns `busy` if too many calls already wait, of all teams together or of this team. */
export type Turns = <T>(teamId: string, work: () => Promise<T>) => Promise<T | 'busy'>;

/** Runs one call at a time. Teams take turns, so a team with many calls delays another team by at most one call. */
export function makeTurns(limits: TurnLimits): Turns {
  /** The waiting calls of each team. The team whose turn is next is the first entry. */
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
