/** Places of things that are open at once, a bounded number for each key. */
export interface Places {
  /**
   * Takes a place of `key`. Returns the function that frees the place, only once even if it is called again; undefined if all places are
   * taken.
   */
  enter(key: string): (() => void) | undefined;
}

/** Makes `most` places for each key. */
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
