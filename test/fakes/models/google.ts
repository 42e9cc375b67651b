import { listOf, objectOf, piecesOf, textOf } from './json.ts';
import { checkTools } from './tool-rules.ts';
import type { FakeConversation, FakeDialect, FakeReply } from './turns.ts';

function read(body: Readonly<Record<string, unknown>>, pathModel: string | undefined): FakeConversation {
  const contents = listOf(body.contents);
  if (contents.length === 0) throw new Error('* GenerateContentRequest.contents: contents is not specified');
  let turn = 0;
  let turnOfPrompt = 0;
  let prompt = '';
  let toolResults: string[] = [];
  for (const content of contents) {
    if (content.role === 'model') {
      turn += 1;
      turnOfPrompt += 1;
      toolResults = [];
      continue;
    }
    const parts = listOf(content.parts);
    for (const part of parts) {
      const response = objectOf(part.functionResponse).response;
      if (response !== undefined) toolResults.push(textOf(objectOf(response).content ?? response));
    }
    const texts = parts.filter((part) => typeof part.text === 'string');
    if (texts.length > 0) {
      prompt = texts.map((part) => textOf(part.text)).join('\n');
      turnOfPrompt = 0;
    }
  }
  const tools = listOf(body.tools)
    .flatMap((tool) => listOf(tool.functionDeclarations))
    .map(({ name, parametersJsonSchema: schema }) => ({ name: textOf(name), schema }));
  checkTools('google', tools);
  const toolNames = tools.map(({ name }) => name);
  return { model: pathModel ?? '', turn, turnOfPrompt, prompt, toolNames, toolResults };
}

/**
 * Returns the token counts in Google's format: `candidatesTokenCount` excludes thoughts, and `promptTokenCount` includes cached
 * tokens.
 */
function usageOf(reply: FakeReply, finished: boolean): Record<string, unknown> {
  const { input, output, cacheRead, cacheWrite, reasoning } = reply.usage;
  const promptTokenCount = input + cacheRead + cacheWrite;
  return {
    promptTokenCount,
    ...(cacheRead > 0 ? { cachedContentTokenCount: cacheRead } : {}),
    ...(finished ? { candidatesTokenCount: output - reasoning } : {}),
    ...(reasoning > 0 ? { thoughtsTokenCount: reasoning } : {}),
    totalTokenCount: promptTokenCount + (finished ? output : reasoning),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: promptTokenCount }],
  };
}

function chunk(reply: FakeReply, parts: unknown[], finished: boolean): Record<string, unknown> {
  const content = { parts, role: 'model' };
  return {
    candidates: [{ content, ...(finished ? { finishReason: 'STOP' } : {}), index: 0 }],
    usageMetadata: usageOf(reply, finished),
    modelVersion: reply.model,
    responseId: reply.id,
  };
}

function partsOf(reply: FakeReply): unknown[] {
  const thoughts = piecesOf(reply.thinking, 40).map((text) => ({ text, thought: true }));
  const calls = reply.toolCalls.map((call, index) => ({
    functionCall: { id: call.id, name: call.name, args: call.input },
    // Gemini 3 signs the first call of each step, and requires this signature in the next request.
    ...(index === 0 ? { thoughtSignature: 'ZmFrZS10aG91Z2h0' } : {}),
  }));
  return [...thoughts, ...reply.text.map((text) => ({ text })), ...calls];
}

/** The real service ends its lines with CR LF. */
const event = (data: unknown): string => `data: ${JSON.stringify(data)}\r\n\r\n`;

const statusNames: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
};

const errorBody = (code: number, message: string): unknown => ({
  error: { code, message, status: statusNames[code] ?? 'UNKNOWN' },
});

/**
 * The protocol of Google Gemini, `POST /v1beta/models/{model}:streamGenerateContent?alt=sse`. Its format:
 * ai.google.dev/api/generate-content.
 */
export const googleDialect: FakeDialect = {
  read,
  stream: (reply) => [
    ...partsOf(reply).map((part) => event(chunk(reply, [part], false))),
    event(chunk(reply, [{ text: '' }], true)),
  ],
  whole: (reply) => chunk(reply, partsOf(reply), true),
  error: errorBody,
  errorEvent: (message) => event(errorBody(503, message)),
  headers: {
    'x-gemini-service-tier': 'standard',
    'server-timing': 'gfet4t7; dur=12',
    vary: 'Origin, X-Origin, Referer',
  },
};
