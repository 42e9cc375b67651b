/** Compares file paths with patterns. */

/** How many comparison steps the patterns of one filter may still take for one delivery. */
export interface Steps {
  left: number;
}

/**
 * Returns whether the pattern matches the whole path. The parts between `/` are compared one by one: `*` and `?` match characters
 * within a part, and a part `**` matches any number of parts. Takes at most (length of the pattern) × (length of the path) steps. A
 * regular expression could take far more, because it backtracks. When no steps are left, the pattern does not match.
 */
export function matchesPathPattern(pattern: string, path: string, steps: Steps): boolean {
  return advance(pattern.split('/'), path.split('/'), {
    isMany: (part) => part === '**',
    isSame: (part, given) =>
      advance(part.split(''), given.split(''), {
        isMany: (unit) => unit === '*',
        isSame: (unit, char) => unit === '?' || unit === char,
        steps,
      }),
    steps,
  });
}

interface Rules {
  readonly isMany: (token: string) => boolean;
  readonly isSame: (token: string, given: string) => boolean;
  readonly steps: Steps;
}

/**
 * Returns whether the tokens of a pattern match the given characters or parts. Follows all possible matches at the same time. A token for
 * which `isMany` is true matches any number of characters or parts.
 */
function advance(tokens: readonly string[], given: readonly string[], { isMany, isSame, steps }: Rules): boolean {
  let reached = skipMany(new Set([0]), tokens, isMany);
  for (const each of given) {
    const next = new Set<number>();
    for (const at of reached) {
      steps.left -= 1;
      if (steps.left < 0) return false;
      const token = tokens[at];
      if (token === undefined) continue;
      if (isMany(token)) next.add(at);
      else if (isSame(token, each)) next.add(at + 1);
    }
    reached = skipMany(next, tokens, isMany);
    if (reached.size === 0) return false;
  }
  return reached.has(tokens.length);
}

/**
 * Adds the position after each reached token such as `*`, because such a token also matches an empty text. The loop also visits the
 * positions that it adds.
 */
function skipMany(places: Set<number>, tokens: readonly string[], isMany: Rules['isMany']): Set<number> {
  for (const at of places) {
    const token = tokens[at];
    if (token !== undefined && isMany(token)) places.add(at + 1);
  }
  return places;
}
