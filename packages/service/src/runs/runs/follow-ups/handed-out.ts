/**
 * SQL: whether the agent of the execution `e` may have the text of the waiting follow-up `f`. Until then, the text is only in the service,
 * so it can be changed and withdrawn.
 *
 * The agent gets the first waiting follow-up when a turn has ended, and an answer at once. The agent reads its inbox in the order of the
 * positions, so it gets an answer together with all follow-ups before it. A follow-up never becomes hidden again while it waits for the
 * same execution.
 */
export const isHandedOut = (f: string, e: string): string => `(${e}.phase <> 'ended' AND (
  ${f}.is_debug OR ${f}.answers IS NOT NULL OR ${e}.awaits_followup IS NULL
  OR EXISTS (SELECT FROM followups later WHERE later.run_id = ${f}.run_id AND later.position > ${f}.position AND later.answers IS NOT NULL)
  OR ${e}.awaits_followup AND NOT EXISTS (SELECT FROM followups earlier
    WHERE earlier.run_id = ${f}.run_id AND earlier.position < ${f}.position AND earlier.execution_id IS NULL)))`;
