const steps = [
  ['s', 1_000, 60],
  ['min', 60_000, 60],
  ['h', 3_600_000, 24],
  ['d', 86_400_000, 30],
] as const;

/** Returns how long ago a time was: `now`, `12 s ago`, `3 min ago`, `5 h ago`, `2 d ago`. For older times, returns the date. */
export function formatAgo(time: string, now: number): string {
  const passed = now - Date.parse(time);
  // A time up to a minute in the future counts as `now`, because the clocks of two machines differ a little.
  if (passed < 1_000) return passed > -60_000 ? 'now' : time.slice(0, 10);
  for (const [unit, length, most] of steps) {
    const count = Math.floor(passed / length);
    if (count < most) return `${count} ${unit} ago`;
  }
  return time.slice(0, 10);
}
