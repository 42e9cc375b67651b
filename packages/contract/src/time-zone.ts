/** Returns the canonical name of an IANA time zone; null: there is none of this name. An offset such as +02:00 is not a name. */
export function findTimeZone(name: string): string | null {
  if (!/^[A-Za-z]/.test(name)) return null;
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return null;
  }
}
