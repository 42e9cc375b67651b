/** Characters of one transcript line. The transcript stores only the beginning and the size of a longer line. */
export const maxTranscriptLine = 1024 * 1024;

/** Characters of one text event. A harness may send megabytes in one chunk. */
export const maxTextChunk = 64 * 1024;

/** Characters of JSON in the input of an action or the data of a notice. */
export const maxDataChars = 256 * 1024;
