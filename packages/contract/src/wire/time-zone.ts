/**
 * Returns the name of an IANA time zone; null if there is no zone with this name. An offset such as +02:00 is not a name. Returns the
 * given name and not another name of the same zone (Europe/Kyiv, Europe/Kiev), because clients compare the stored name with the name
 * that they sent.
 */
export function findTimeZone(name: string): string | null {
  if (!/^[A-Za-z]/.test(name)) return null;
  try {
    const { timeZone } = new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions();
    return timeZone.toLowerCase() === name.toLowerCase() ? timeZone : name;
  } catch {
    return null;
  }
}
