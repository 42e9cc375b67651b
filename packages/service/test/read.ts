/** Test support: reads a conversation in the same way as the API. */
import { ConversationResponse } from '@runyard/contract/runs/conversations';
import type { Database } from '../src/platform/store/database/database.ts';
import { conversationJson } from '../src/runs/conversations/as-json.ts';
import { type ConversationRun, readParts } from '../src/runs/conversations/read.ts';

/** Returns the conversation of these runs; null if it has no messages. */
export async function readConversation(
  db: Database,
  conversationId: string,
  runs: readonly ConversationRun[],
): Promise<ConversationResponse | null> {
  const json = await conversationJson({ id: conversationId, title: undefined }, readParts(db, runs));
  if (json === null) return null;
  const pieces: Buffer[] = [];
  for await (const piece of json) pieces.push(piece);
  return ConversationResponse.parse(JSON.parse(Buffer.concat(pieces).toString()));
}
