import { createHash } from '../builtin-modules.ts';

/** As in the contract: longer ids are refused. */
const maxLength = 1000;

/** Returns the id that the service is told for a tool call: the harness's own, or its SHA-256 where that is too long. */
export function actionId(toolCallId: string): string {
  return toolCallId.length <= maxLength ? toolCallId : createHash('sha256').update(toolCallId).digest('hex');
}
