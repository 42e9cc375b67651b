/** The transcript has only the beginning and the size of a longer line. */
export const maxTranscriptLine = 1024 * 1024;

/** Characters of one text event; a harness may send megabytes in one chunk. */
export const maxTextChunk = 64 * 1024;

/** JSON of an action's input or a notice's data. */
export const maxDataChars = 256 * 1024;
