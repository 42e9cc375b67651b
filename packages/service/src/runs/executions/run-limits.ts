/** Largest number of bytes that may be stored. */
export interface RunLimits {
  /** Conversation and setup events of all executions of a run. */
  readonly eventBytes: number;
  /** Raw transcript lines of all executions of a run. */
  readonly transcriptBytes: number;
  /** All that a team stores. */
  readonly teamBytes: number;
}
