/**
 * Removes the parts of a sandbox one after another, also after a failure. Logs the failures, and returns true if there was none. The keys
 * are the names of the parts in the log.
 */
export async function removeParts(
  sandbox: string,
  parts: Readonly<Record<string, () => Promise<unknown> | undefined>>,
  log: { warn(fields: object, message: string): void },
): Promise<boolean> {
  const problems: string[] = [];
  for (const [name, remove] of Object.entries(parts)) {
    try {
      await remove();
    } catch (error) {
      problems.push(`${name}: ${(error as Error).message}`);
    }
  }
  if (problems.length > 0)
    log.warn({ sandbox, problems }, 'a sandbox could not be removed completely; the next start tries again');
  return problems.length === 0;
}
