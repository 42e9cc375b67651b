import { listOf, objectOf, piecesOf, textOf } from './json.ts';
import { openAiError, openAiHeaders } from './openai-responses.ts';
import { checkTools } from './tool-rules.ts';
import type { FakeConversation, FakeDialect, FakeReply } from './turns.ts';

function read(body: Readonly<Record<string, unknown>>): FakeConversation {
  if (typeof body.model !== 'string') throw new Error('you must provide a model parameter');
  const messages = listOf(body.messages);
  if (messages.length === 0) throw new Error("Missing required parameter: 'messages'.");
  let turn = 0;
  let turnOfPrompt = 0;
  let prompt = '';
  let toolResults: string[] = [];
  for (const message of messages) {
    const content = message.content;
    const text =
      typeof content === 'string'
        ? content
        : listOf(content)
            .map((part) => textOf(part.text))
            .join('\n');
    if (message.role === 'assistant') {
      turn += 1;
      turnOfPrompt += 1;
      toolResults = [];
    } else if (message.role === 'tool') {
      toolResults.push(text);
    } else if (message.role === 'user') {
      prompt = text;
      turnOfPrompt = 0;
    }
  }
  const tools = listOf(body.tools).map((tool) => {
    const { name, parameters } = objectOf(tool.function);
    return { name: textOf(name), schema: parameters };
  });
  checkTools('openai', tools);
  const toolNames = tools.map(({ name }) => name);
  return { model: body.model, turn, turnOfPrompt, prompt, toolNames, toolResults };
}

function usageOf(reply: FakeReply): Record<string, unknown> {
  const { input, output, cacheRead, cacheWrite, reasoning } = reply.usage;
  const prompt_tokens = input + cacheRead + cacheWrite;
  return {
    prompt_tokens,
    completion_tokens: output,
    total_tokens: prompt_tokens + output,
    prompt_tokens_details: { cached_tokens: cacheRead, ...(cacheWrite > 0 ? { cache_write_tokens: cacheWrite } : {}) },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}

function stream(reply: FakeReply): string[] {
  const events: string[] = [];
  const chunk = (choices: unknown[], usage: unknown): void => {
    const base = { id: reply.id, object: 'chat.completion.chunk', created: 1_763_720_000, model: reply.model, choices };
    events.push(`data: ${JSON.stringify(reply.includeUsage ? { ...base, usage } : base)}\n\n`);
  };
  const delta = (delta: unknown, finish_reason: string | null = null): void =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason }], null);
  delta({ role: 'assistant', content: '' });
  for (const piece of piecesOf(reply.thinking, 12)) delta({ reasoning_content: piece });
  for (const content of reply.text) delta({ content });
  reply.toolCalls.forEach((call, index) => {
    delta({ tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }] });
    for (const piece of piecesOf(JSON.stringify(call.input), 9)) {
      delta({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  });
  delta({}, reply.toolCalls.length > 0 ? 'tool_calls' : 'stop');
  // The usage chunk has no choices. It is sent only if the request has stream_options.include_usage.
  if (reply.includeUsage) chunk([], usageOf(reply));
  events.push('data: [DONE]\n\n');
  return events;
}

function whole(reply: FakeReply): unknown {
  const calls = reply.toolCalls.map((call) => ({
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.input) },
  }));
  const message = {
    role: 'assistant',
    content: reply.text.length > 0 ? reply.text.join('') : null,
    ...(reply.thinking === '' ? {} : { reasoning_content: reply.thinking }),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
  const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop';
  return {
    id: reply.id,
    object: 'chat.completion',
    created: 1_763_720_000,
    model: reply.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason }],
    usage: usageOf(reply),
  };
}

/** OpenAI chat completions, `POST …/chat/completions`, the protocol of OpenAI, vLLM, llama.cpp and Ollama. */
export const openAiChatDialect: FakeDialect = {
  read,
  stream,
  whole,
  error: openAiError,
  errorEvent: (message) => `data: ${JSON.stringify(openAiError(500, message))}\n\n`,
  headers: openAiHeaders,
};
