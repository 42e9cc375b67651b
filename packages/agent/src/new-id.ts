let counter = 0;

/**
 * Returns an id that is unique among all executions, from time, process, randomness and a counter. The id is not a secret, so it is made
 * without node:crypto, which would slow the start (`bench/modules.md`).
 */
export function newId(): string {
  const random = () =>
    Math.floor(Math.random() * 2 ** 32)
      .toString(36)
      .padStart(7, '0');
  return `${Date.now().toString(36)}-${process.pid.toString(36)}-${random()}${random()}-${(++counter).toString(36)}`;
}
