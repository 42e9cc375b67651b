import type { ConversationPart } from './parts.ts';

const pieceLength = 64 * 1024;

/** Returns the JSON of a piece of text without the quotes around it, so that the pieces of a text can be written as one JSON string. */
const inString = (text: string): string => JSON.stringify(text).slice(1, -1);

/** Returns the JSON of an object without its braces. */
const members = (object: object): string => JSON.stringify(object).slice(1, -1);

/** Writes a `ConversationResponse` as JSON, in pieces of about 64 KB. Returns null if the conversation has no parts. */
export async function conversationJson(
  conversation: { readonly id: string; readonly title: string | undefined },
  parts: AsyncGenerator<ConversationPart>,
): Promise<AsyncGenerator<Buffer> | null> {
  const first = await parts.next();
  if (first.done) return null;
  return write(conversation, first.value, parts);
}

async function* write(
  { id, title }: Parameters<typeof conversationJson>[0],
  first: ConversationPart,
  rest: AsyncGenerator<ConversationPart>,
): AsyncGenerator<Buffer> {
  let text = `{${members({ conversation_id: id, title })},"steps":[`;
  let steps = 0;
  let messages = 0;
  const add = (part: ConversationPart): void => {
    switch (part.kind) {
      case 'step':
        text += `${steps > 0 ? ',' : ''}{${members({ id: part.id, started_at: part.startedAt })},"messages":[`;
        steps += 1;
        messages = 0;
        break;
      case 'message':
        text += `${messages > 0 ? ',' : ''}${JSON.stringify(part.message)}`;
        messages += 1;
        break;
      case 'text_start': {
        const block = members({ type: 'text', message_id: part.messageId });
        text += `${messages > 0 ? ',' : ''}{${members(part.message)},"content":[{${block},"text":"`;
        messages += 1;
        break;
      }
      case 'text':
        text += inString(part.text);
        break;
      case 'text_end':
        text += '"}]}';
        break;
      case 'step_end': {
        const { completedAt, summary } = part;
        text += `],${members({ steps: [], completed_at: completedAt, summary })}}`;
        break;
      }
    }
  };
  try {
    add(first);
    for await (const part of rest) {
      add(part);
      if (text.length < pieceLength) continue;
      yield Buffer.from(text);
      text = '';
    }
    yield Buffer.from(`${text}]}`);
  } finally {
    await rest.return(undefined);
  }
}
