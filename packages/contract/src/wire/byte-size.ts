/** Formats a size in powers of 1024: `12 B`, `3.4 KB`, `10.5 MB`, `200 MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ['KB', 'MB', 'GB', 'TB'];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const tenths = Math.round(value * 10);
  return `${value >= 100 || (value >= 10 && tenths % 10 === 0) ? Math.round(value) : (tenths / 10).toFixed(1)} ${units[unit]}`;
}

/** Formats a size that exceeds its limit: `10.5 MB; at most 10 MB`. If the rounded sizes would look the same, formats them in bytes. */
export function overLimit(bytes: number, most: number): string {
  const [size, limit] = [formatBytes(bytes), formatBytes(most)];
  if (Number.parseFloat(size) !== Number.parseFloat(limit)) return `${size}; at most ${limit}`;
  const count = (value: number) => `${value.toLocaleString('en-US')} bytes`;
  return `${count(bytes)}; at most ${count(most)} (${limit})`;
}
