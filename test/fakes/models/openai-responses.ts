import { listOf, objectOf, piecesOf, textOf } from './json.ts';
import { checkTools } from './tool-rules.ts';
import type { FakeConversation, FakeDialect, FakeReply } from './turns.ts';

/** Names of the offered tools. The tool TOOL of the namespace NAMESPACE has the name NAMESPACE/TOOL. */
function namesOf(tools: unknown): string[] {
  const offered = listOf(tools);
  const functions = offered.flatMap((tool) => (tool.type === 'namespace' ? listOf(tool.tools) : [tool]));
  checkTools(
    'openai',
    functions.map(({ name, parameters }) => ({ name: textOf(name), schema: parameters })),
  );
  return offered.flatMap((tool) =>
    tool.type === 'namespace'
      ? listOf(tool.tools).map((inner) => `${textOf(tool.name)}/${textOf(inner.name)}`)
      : [textOf(tool.name)],
  );
}

/** Types of items that are part of an answer of the model. */
const answerTypes = ['function_call', 'custom_tool_call', 'reasoning', 'item_reference'];

/** Returns the result of a tool as text. Newer programs send it as a list of parts. */
const outputOf = (output: unknown): string =>
  typeof output === 'string'
    ? output
    : listOf(output)
        .map((part) => textOf(part.text))
        .join('\n');

function read(body: Readonly<Record<string, unknown>>): FakeConversation {
  if (typeof body.model !== 'string') throw new Error("Missing required parameter: 'model'.");
  const raw = body.input;
  if (raw === undefined) throw new Error("Missing required parameter: 'input'.");
  const items = typeof raw === 'string' ? [{ role: 'user', content: raw }] : listOf(raw);
  let turn = 0;
  let turnOfPrompt = 0;
  let prompt = '';
  let answering = false;
  let toolResults: string[] = [];
  const toolNames = namesOf(body.tools);
  for (const each of items) {
    const item = objectOf(each);
    const answer = item.role === 'assistant' || answerTypes.includes(textOf(item.type));
    if (answer && !answering) {
      turn += 1;
      turnOfPrompt += 1;
      toolResults = [];
    }
    answering = answer;
    if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output')
      toolResults.push(outputOf(item.output));
    // Newer models get their tools as an item of the conversation.
    if (item.type === 'additional_tools') toolNames.push(...namesOf(item.tools));
    if (item.role === 'user') {
      const content = item.content;
      prompt =
        typeof content === 'string'
          ? content
          : listOf(content)
              .map((part) => textOf(part.text))
              .join('\n');
      turnOfPrompt = 0;
    }
  }
  return { model: body.model, turn, turnOfPrompt, prompt, toolNames, toolResults };
}

function usageOf(reply: FakeReply): Record<string, unknown> {
  const { input, output, cacheRead, cacheWrite, reasoning } = reply.usage;
  const all = input + cacheRead + cacheWrite;
  return {
    input_tokens: all,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: all + output,
  };
}

function itemsOf(reply: FakeReply): Record<string, unknown>[] {
  const items: Record<string, unknown>[] = [];
  if (reply.thinking !== '') {
    items.push({ id: `rs_${reply.id}`, type: 'reasoning', summary: [], encrypted_content: 'ZmFrZS1yZWFzb25pbmc=' });
  }
  if (reply.text.length > 0) {
    const content = [{ type: 'output_text', text: reply.text.join(''), annotations: [], logprobs: [] }];
    items.push({ id: `msg_${reply.id}`, type: 'message', status: 'completed', role: 'assistant', content });
  }
  for (const call of reply.toolCalls) {
    const [, namespace, name = call.name] = /^(.+)\/(.+)$/.exec(call.name) ?? [];
    items.push({
      id: `fc_${call.id}`,
      status: 'completed',
      call_id: call.id,
      ...(namespace === undefined ? {} : { namespace }),
      name,
      ...(call.inputText === undefined
        ? { type: 'function_call', arguments: JSON.stringify(call.input) }
        : { type: 'custom_tool_call', input: call.inputText }),
    });
  }
  return items;
}

function responseOf(reply: FakeReply, status: string): Record<string, unknown> {
  const done = status === 'completed';
  return {
    id: reply.id,
    object: 'response',
    created_at: 1_763_720_000,
    status,
    error: null,
    incomplete_details: null,
    model: reply.model,
    output: done ? itemsOf(reply) : [],
    parallel_tool_calls: true,
    service_tier: 'default',
    store: false,
    usage: done ? usageOf(reply) : null,
  };
}

function stream(reply: FakeReply): string[] {
  const events: string[] = [];
  let sequence = 0;
  const push = (data: Record<string, unknown>): void => {
    events.push(`event: ${data.type}\ndata: ${JSON.stringify({ ...data, sequence_number: sequence })}\n\n`);
    sequence += 1;
  };
  push({ type: 'response.created', response: responseOf(reply, 'in_progress') });
  push({ type: 'response.in_progress', response: responseOf(reply, 'in_progress') });
  itemsOf(reply).forEach((item, output_index) => {
    const item_id = item.id;
    if (item.type === 'message') {
      const at = { item_id, output_index, content_index: 0 };
      const part = { type: 'output_text', text: '', annotations: [], logprobs: [] };
      push({ type: 'response.output_item.added', output_index, item: { ...item, status: 'in_progress', content: [] } });
      push({ type: 'response.content_part.added', ...at, part });
      for (const delta of reply.text) push({ type: 'response.output_text.delta', ...at, delta, logprobs: [] });
      push({ type: 'response.output_text.done', ...at, text: reply.text.join(''), logprobs: [] });
      push({ type: 'response.content_part.done', ...at, part: { ...part, text: reply.text.join('') } });
    } else if (item.type === 'function_call') {
      const at = { item_id, output_index };
      push({
        type: 'response.output_item.added',
        output_index,
        item: { ...item, status: 'in_progress', arguments: '' },
      });
      for (const delta of piecesOf(textOf(item.arguments), 9)) {
        push({ type: 'response.function_call_arguments.delta', ...at, delta });
      }
      push({ type: 'response.function_call_arguments.done', ...at, name: item.name, arguments: item.arguments });
    } else {
      push({ type: 'response.output_item.added', output_index, item });
    }
    push({ type: 'response.output_item.done', output_index, item });
  });
  push({ type: 'response.completed', response: responseOf(reply, 'completed') });
  return events;
}

/** Error body of OpenAI and of compatible servers. */
export function openAiError(status: number, message: string): unknown {
  const kinds: Readonly<Record<number, [string, string | null]>> = {
    401: ['invalid_request_error', 'invalid_api_key'],
    429: ['requests', 'rate_limit_exceeded'],
    500: ['server_error', null],
  };
  const [type, code] = kinds[status] ?? ['invalid_request_error', null];
  return { error: { message, type, param: null, code } };
}

/** Headers that OpenAI sends with the body. */
export const openAiHeaders: Readonly<Record<string, string>> = {
  'x-request-id': 'req_fake',
  'openai-organization': 'org-of-the-operator',
  'openai-processing-ms': '12',
  'x-ratelimit-remaining-requests': '99',
  'set-cookie': '__cf_bm=cookie-of-the-operator; path=/',
};

/** The protocol OpenAI Responses, `POST /v1/responses`. Its format: platform.openai.com/docs/api-reference/responses-streaming. */
export const openAiResponsesDialect: FakeDialect = {
  read,
  stream,
  whole: (reply) => responseOf(reply, 'completed'),
  error: openAiError,
  errorEvent: (message) =>
    `event: error\ndata: ${JSON.stringify({ type: 'error', sequence_number: 99, error: { type: 'server_error', code: 'server_error', message, param: null } })}\n\n`,
  headers: openAiHeaders,
};
