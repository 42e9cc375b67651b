let counter = 0;

/**
 * Returns an id that is unique among all executions. The id consists of time, process, random bits and a counter. Does not use
 * node:crypto, because the id is not a secret and loading this module would slow the start.
 */
export function newId(): string {
  const random = () =>
    Math.floor(Math.random() * 2 ** 32)
      .toString(36)
      .padStart(7, '0');
  return `${Date.now().toString(36)}-${process.pid.toString(36)}-${random()}${random()}-${(++counter).toString(36)}`;
}
