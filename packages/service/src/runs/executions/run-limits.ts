/** Largest number of bytes that all executions of a run may store. */
export interface RunLimits {
  /** Conversation and setup events. */
  readonly eventBytes: number;
  /** Raw transcript lines. */
  readonly transcriptBytes: number;
}
