/** Channel that notifies all processes of the end of a key or a change of a person's rights; the payload is the id of a key, or empty: any. */
export const keysChannel = 'runyard_keys';
