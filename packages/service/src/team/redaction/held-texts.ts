/**
 * Text that redaction holds back between two pieces of a stream, because it may be the beginning of a secret. The keys are
 * the streams; `executions.redaction_tails` keeps the record between two batches of events.
 */
export type HeldTexts = Record<string, string>;
