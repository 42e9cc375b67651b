const firstMs = 100;
const longestMs = 5000;

/** Waiting time before the given try (0: the first after a loss): doubles from 100 ms to 5 s; jitter takes up to half of it, so that workers do not come back all at once. */
export function reconnectDelay(attempt: number, random: () => number): number {
  const full = Math.min(longestMs, firstMs * 2 ** Math.min(attempt, 16));
  return full * (0.5 + random() / 2);
}
