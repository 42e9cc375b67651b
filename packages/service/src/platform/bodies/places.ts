/** Limits the number of open connections or requests of each key. Each of them takes a place. */
export interface Places {
  /**
   * Takes a place of `key` and returns the function that frees it. A second call of that function does nothing. Returns undefined if
   * all places are taken.
   */
  enter(key: string): (() => void) | undefined;
}

/** Makes places. Each key can take at most `most` places at the same time. */
export function makePlaces(most: number): Places {
  const taken = new Map<string, number>();
  return {
    enter(key) {
      const count = taken.get(key) ?? 0;
      if (count >= most) return undefined;
      taken.set(key, count + 1);
      let hasLeft = false;
      return () => {
        if (hasLeft) return;
        hasLeft = true;
        const left = (taken.get(key) ?? 1) - 1;
        if (left > 0) taken.set(key, left);
        else taken.delete(key);
      };
    },
  };
}
