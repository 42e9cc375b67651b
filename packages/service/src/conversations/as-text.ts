import type { ContentBlock, ConversationResponse, Step } from '@runyard/contract/conversations';
import { lastPart } from '@runyard/contract/shorten';

/** About 50,000 tokens: what a model can take in front of a prompt. */
const maxCharacters = 200_000;
/** Of one output: the end says how it went. */
const maxOutputCharacters = 4_000;

const tail = (text: string, max: number): string => (text.length <= max ? text : `[…] ${lastPart(text, max)}`);

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'action':
      return `[${block.name}: ${tail(JSON.stringify(block.input) ?? '', maxOutputCharacters)}]`;
    case 'action_result': {
      const output = typeof block.output === 'string' ? block.output : (JSON.stringify(block.output) ?? '');
      return `[${block.name} ${block.state}]\n${tail(output, maxOutputCharacters)}`;
    }
    case 'event':
      return block.name === 'permission' || block.name === 'question'
        ? `[${block.name}: ${tail(JSON.stringify(block.data) ?? '', maxOutputCharacters)}]`
        : '';
  }
}

function stepText(step: Step): string {
  return step.messages
    .map((message) => ({ role: message.role, text: message.content.map(blockText).join('\n').trim() }))
    .filter(({ text }) => text !== '')
    .map(({ role, text }) => `## ${role}\n${text}`)
    .join('\n\n');
}

/** A conversation as a text that a harness can read; of a long one its end. */
export function conversationText(conversation: ConversationResponse): string {
  return tail(conversation.steps.map(stepText).join('\n\n'), maxCharacters);
}
