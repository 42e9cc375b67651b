/** Maximum number of characters of a transcript line. If a line is longer, the transcript stores only its beginning and its size. */
export const maxTranscriptLine = 1024 * 1024;

/** Maximum number of characters of a text event. A harness may send megabytes in one message; the agent splits such a text. */
export const maxTextChunk = 64 * 1024;

/** Maximum number of characters of the input of an action or of the data of a notice, as JSON. */
export const maxDataChars = 256 * 1024;
