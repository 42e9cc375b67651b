import { maxEventIdLength } from '@runyard/contract/limits';
import { createHash } from '../builtin-modules.ts';

/** Returns the id under which the service knows a tool call: the harness's own id, or its SHA-256 if it is too long. */
export function actionId(toolCallId: string): string {
  return toolCallId.length <= maxEventIdLength ? toolCallId : createHash('sha256').update(toolCallId).digest('hex');
}
