import { maxConversationTextLength } from '@runyard/contract/limits';
import type { ContentBlock, MessageRole } from '@runyard/contract/runs/conversations';
import { lastPart } from '@runyard/contract/wire/shorten';
import type { ConversationPart } from './parts.ts';

/** Maximum number of characters of an output in the text. The end of the output is kept, because it shows how the action ended. */
const maxOutputCharacters = 4_000;

const tail = (text: string, max: number): string => (text.length <= max ? text : `[…] ${lastPart(text, max)}`);

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'action':
      return `[${block.name}: ${tail(JSON.stringify(block.input), maxOutputCharacters)}]`;
    case 'action_result':
      return `[${block.name} ${block.state}]\n${tail(block.output.text, maxOutputCharacters)}`;
    case 'event':
      return block.name === 'permission' || block.name === 'question'
        ? `[${block.name}: ${tail(JSON.stringify(block.data), maxOutputCharacters)}]`
        : '';
  }
}

/**
 * Returns a conversation as a text for a model. If the conversation is long, the text contains only its end. Returns undefined if the
 * conversation has no parts.
 * The function holds at most about twice the returned text in memory.
 */
export async function conversationText(parts: AsyncIterable<ConversationPart>): Promise<string | undefined> {
  let text = '';
  let length = 0;
  let isEmpty = true;
  /** The part of the present message that was already read. */
  let pieces = '';
  let role: MessageRole = 'assistant';
  const add = (said: string): void => {
    const trimmed = said.trim();
    if (trimmed === '') return;
    const added = `${length === 0 ? '' : '\n\n'}## ${role}\n${trimmed}`;
    length += added.length;
    text += added;
    // Shortening copies the whole text. So shorten the text only when it has doubled, not after each message.
    if (text.length > 2 * maxConversationTextLength) text = text.slice(-maxConversationTextLength);
  };
  for await (const part of parts) {
    isEmpty = false;
    switch (part.kind) {
      case 'message':
        role = part.message.role;
        add(part.message.content.map(blockText).join('\n'));
        break;
      case 'text_start':
        role = part.message.role;
        pieces = '';
        break;
      case 'text':
        pieces += part.text;
        if (pieces.length > 2 * maxConversationTextLength) pieces = pieces.slice(-maxConversationTextLength);
        break;
      case 'text_end':
        add(pieces);
        break;
      case 'step':
      case 'step_end':
        break;
    }
  }
  if (isEmpty) return undefined;
  const end = text.slice(-maxConversationTextLength).toWellFormed();
  return length <= maxConversationTextLength ? text : `[…] ${end}`;
}
