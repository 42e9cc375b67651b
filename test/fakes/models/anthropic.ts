import { listOf, objectOf, piecesOf, textOf } from './json.ts';
import { checkTools } from './tool-rules.ts';
import type { FakeConversation, FakeDialect, FakeReply } from './turns.ts';

const event = (data: Record<string, unknown>): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

function usageOf(reply: FakeReply, output: number): Record<string, unknown> {
  return {
    input_tokens: reply.usage.input,
    cache_creation_input_tokens: reply.usage.cacheWrite,
    cache_read_input_tokens: reply.usage.cacheRead,
    output_tokens: output,
  };
}

const stopReason = (reply: FakeReply): string => (reply.toolCalls.length > 0 ? 'tool_use' : 'end_turn');

function read(body: Readonly<Record<string, unknown>>): FakeConversation {
  if (typeof body.model !== 'string') throw new Error('model: Field required');
  if (typeof body.max_tokens !== 'number') throw new Error('max_tokens: Field required');
  const messages = listOf(body.messages);
  if (messages.length === 0) throw new Error('messages: at least one message is required');
  let turn = 0;
  let turnOfPrompt = 0;
  let prompt = '';
  let toolResults: string[] = [];
  for (const message of messages) {
    // A program may send instructions of its own between the messages. They are not a prompt of the user.
    if (message.role === 'system') continue;
    if (message.role === 'assistant') {
      turn += 1;
      turnOfPrompt += 1;
      toolResults = [];
      continue;
    }
    const content = message.content;
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content);
    for (const raw of blocks) {
      const block = objectOf(raw);
      if (block.type === 'tool_result') {
        const result = block.content;
        toolResults.push(
          typeof result === 'string'
            ? result
            : listOf(result)
                .map((b) => textOf(b.text))
                .join(''),
        );
      }
    }
    const texts = blocks.map(objectOf).filter((block) => block.type === 'text');
    if (texts.length > 0) {
      prompt = texts.map((block) => textOf(block.text)).join('\n');
      turnOfPrompt = 0;
    }
  }
  const tools = listOf(body.tools).map((tool) => ({ name: textOf(tool.name), schema: tool.input_schema }));
  checkTools('anthropic', tools);
  const toolNames = tools.map(({ name }) => name);
  return { model: body.model, turn, turnOfPrompt, prompt, toolNames, toolResults };
}

function stream(reply: FakeReply): string[] {
  const message = {
    id: reply.id,
    type: 'message',
    role: 'assistant',
    model: reply.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
  const write = reply.usage.cacheWrite;
  const usage = {
    ...usageOf(reply, 1),
    cache_creation: { ephemeral_5m_input_tokens: write, ephemeral_1h_input_tokens: 0 },
    service_tier: 'standard',
  };
  const events = [event({ type: 'message_start', message: { ...message, usage } })];
  let index = 0;
  const block = (start: Record<string, unknown>, deltas: Record<string, unknown>[]): void => {
    events.push(event({ type: 'content_block_start', index, content_block: start }));
    if (index === 0) events.push(event({ type: 'ping' }));
    for (const delta of deltas) events.push(event({ type: 'content_block_delta', index, delta }));
    events.push(event({ type: 'content_block_stop', index }));
    index += 1;
  };
  if (reply.thinking !== '') {
    block({ type: 'thinking', thinking: '', signature: '' }, [
      ...piecesOf(reply.thinking, 12).map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature: 'ZmFrZS1zaWduYXR1cmU=' },
    ]);
  }
  if (reply.text.length > 0) {
    block(
      { type: 'text', text: '' },
      reply.text.map((text) => ({ type: 'text_delta', text })),
    );
  }
  for (const call of reply.toolCalls) {
    const pieces = ['', ...piecesOf(call.inputText ?? JSON.stringify(call.input), 9)];
    block(
      { type: 'tool_use', id: call.id, name: call.name, input: {} },
      pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    );
  }
  const delta = { stop_reason: stopReason(reply), stop_sequence: null };
  events.push(event({ type: 'message_delta', delta, usage: usageOf(reply, reply.usage.output) }));
  events.push(event({ type: 'message_stop' }));
  return events;
}

function whole(reply: FakeReply): unknown {
  const thinking = reply.thinking === '' ? [] : [{ type: 'thinking', thinking: reply.thinking, signature: 'ZmFrZQ==' }];
  const text = reply.text.length === 0 ? [] : [{ type: 'text', text: reply.text.join('') }];
  const calls = reply.toolCalls.map((call) => ({ type: 'tool_use', id: call.id, name: call.name, input: call.input }));
  return {
    id: reply.id,
    type: 'message',
    role: 'assistant',
    model: reply.model,
    content: [...thinking, ...text, ...calls],
    stop_reason: stopReason(reply),
    stop_sequence: null,
    usage: { ...usageOf(reply, reply.usage.output), service_tier: 'standard' },
  };
}

const errorTypes: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

const errorBody = (type: string, message: string): Record<string, unknown> => ({
  type: 'error',
  error: { type, message },
  request_id: 'req_fake',
});

/** The protocol Anthropic Messages, `POST /v1/messages`. Its format: platform.claude.com/docs/en/build-with-claude/streaming. */
export const anthropicDialect: FakeDialect = {
  read,
  stream,
  whole,
  error: (status, message) => errorBody(errorTypes[status] ?? 'api_error', message),
  errorEvent: (message) => event(errorBody('overloaded_error', message)),
  headers: {
    'request-id': 'req_fake',
    'anthropic-organization-id': 'org-of-the-operator',
    'anthropic-ratelimit-requests-remaining': '99',
    'set-cookie': '__cf_bm=cookie-of-the-operator; path=/',
  },
};
