/** Values that this browser keeps for the origin. A browser may forbid storage: then they are valid only until the page closes. */

const kept = new Map<string, string>();

/** Keeps a value under a name. */
export function keep(name: string, value: string): void {
  kept.set(name, value);
  try {
    localStorage.setItem(`runyard.${name}`, value);
  } catch {}
}

/** Returns the value under a name; null or undefined if there is none. */
export function readKept(name: string): string | null | undefined {
  try {
    return localStorage.getItem(`runyard.${name}`);
  } catch {
    return kept.get(name);
  }
}
