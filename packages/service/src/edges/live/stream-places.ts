/** Limits the open event streams of this process: each open stream takes one of a limited number of places. */
import { makePlaces } from '../../platform/bodies/places.ts';
import type { Principal } from '../../team/access/keys/principal.ts';

/** One team can take a half of all places, and one key can take a quarter. */
const partOfTeam = 2;
const partOfKey = 4;

/** The limit of open streams that was reached. `by`: the limit of a key, of a team or of the process. */
export interface StreamsTaken {
  readonly by: 'key' | 'team' | 'process';
  readonly most: number;
}

export interface StreamPlaces {
  /**
   * Takes a place. Returns the function that releases the place, or the limit that is reached. The operator's keys need no place of the
   * process.
   */
  enter(principal: Pick<Principal, 'keyId' | 'teamId' | 'isOperator'>): (() => void) | StreamsTaken;
}

/** Makes `most` places, at most half of the `openFiles` that the process can have. */
export function makeStreamPlaces(most: number, openFiles: number): StreamPlaces {
  const ofProcess = Math.min(most, Math.floor(openFiles / 2));
  const limits = {
    process: ofProcess,
    team: Math.max(1, Math.floor(ofProcess / partOfTeam)),
    key: Math.max(1, Math.floor(ofProcess / partOfKey)),
  };
  const places = { key: makePlaces(limits.key), team: makePlaces(limits.team), process: makePlaces(limits.process) };
  return {
    enter: ({ keyId, teamId, isOperator }) => {
      const left: (() => void)[] = [];
      const leave = (): void => {
        for (const give of left) give();
      };
      const wanted = [['key', keyId], ['team', teamId], ...(isOperator ? [] : [['process', '']])] as [
        StreamsTaken['by'],
        string,
      ][];
      for (const [by, name] of wanted) {
        const give = places[by].enter(name);
        if (give === undefined) {
          leave();
          return { by, most: limits[by] };
        }
        left.push(give);
      }
      return leave;
    },
  };
}
