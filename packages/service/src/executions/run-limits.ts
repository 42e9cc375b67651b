/** Bytes in total, over all executions of the run. */
export interface RunLimits {
  /** Of conversation and setup events. */
  readonly eventBytes: number;
  /** Of the raw transcript. */
  readonly transcriptBytes: number;
}
