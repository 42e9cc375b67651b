/**
 * Returns the smallest number of changes that turn one text into the other. A change inserts, deletes or replaces a letter, or swaps
 * two neighbouring letters (optimal string alignment). No package is used, because these few lines are easier to review than a
 * package.
 */
export function editDistance(from: string, to: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1];
      let best = Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (isSame ? 0 : 1),
      );
      const isSwapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (isSwapped) best = Math.min(best, (beforePrevious[column - 2] ?? 0) + 1);
      current.push(best);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[to.length] ?? 0;
}
