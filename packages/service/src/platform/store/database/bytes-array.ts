/** The number of the type `bytea`, which the elements have. */
const elementType = 17;

/**
 * Returns the value of a parameter of type `bytea[]` in PostgreSQL's binary format (`array_send` of its source), which `pg` uses for
 * every `Buffer`. In text format, each byte would take two to four bytes, and server and client would convert all of them.
 */
export function bytesArray(items: readonly (Buffer | null)[]): Buffer {
  const size = items.reduce((sum, item) => sum + 4 + (item?.length ?? 0), 0);
  const array = Buffer.allocUnsafe((items.length === 0 ? 12 : 20) + size);
  let at = array.writeInt32BE(items.length === 0 ? 0 : 1, 0);
  at = array.writeInt32BE(items.includes(null) ? 1 : 0, at);
  at = array.writeInt32BE(elementType, at);
  if (items.length === 0) return array;
  at = array.writeInt32BE(items.length, at);
  // The index of the first element.
  at = array.writeInt32BE(1, at);
  for (const item of items) {
    at = array.writeInt32BE(item?.length ?? -1, at);
    if (item) at += item.copy(array, at);
  }
  return array;
}
