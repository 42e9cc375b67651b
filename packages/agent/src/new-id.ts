let counter = 0;

/**
 * An id that is unique among all executions: time, process, randomness, a counter. Nobody's rights hang on it, so it
 * is made without node:crypto, whose loading the start would wait for (`bench/modules.md`).
 */
export function newId(): string {
  const random = () =>
    Math.floor(Math.random() * 2 ** 32)
      .toString(36)
      .padStart(7, '0');
  return `${Date.now().toString(36)}-${process.pid.toString(36)}-${random()}${random()}-${(++counter).toString(36)}`;
}
