/** Damerau-less edit distance, bounded by the length of model names. */
function distance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const swap = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[right.length] ?? 0;
}

/** At most `count` of `names` that resemble `wanted`, the likeliest first; names without the part before the slash count too. */
export function closest(wanted: string, names: readonly string[], count: number): string[] {
  const short = wanted.slice(0, 200).toLowerCase();
  return names
    .map((name) => {
      const bare = name.slice(name.indexOf('/') + 1);
      return { name, far: Math.min(distance(short, name.toLowerCase()), distance(short, bare.toLowerCase())) };
    })
    .filter(({ far }) => far <= Math.max(2, short.length / 2))
    .sort((left, right) => left.far - right.far)
    .slice(0, count)
    .map(({ name }) => name);
}
