import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anthropicDialect } from '../../../../../../../test/fakes/models/anthropic.ts';
import { googleDialect } from '../../../../../../../test/fakes/models/google.ts';
import { openAiChatDialect } from '../../../../../../../test/fakes/models/openai-chat.ts';
import { openAiResponsesDialect } from '../../../../../../../test/fakes/models/openai-responses.ts';
import type { FakeReply } from '../../../../../../../test/fakes/models/turns.ts';
import { openAiResponsesUsage } from '../endpoints.ts';
import { anthropicUsage } from './anthropic.ts';
import { noTokens, type UsageReader } from './counts.ts';
import { googleUsage } from './google.ts';
import { openMeter } from './meter.ts';
import { openAiChatUsage } from './openai-chat.ts';

const reply: FakeReply = {
  id: 'id',
  model: 'model',
  thinking: 'hm, "usage" 🙂',
  text: ['ünï ', '{"usage":{"input_tokens":999,"prompt_tokens":999}}', '🙂'],
  toolCalls: [{ id: 'call', name: 'shell', input: { command: 'echo "usageMetadata"\ndata: x' } }],
  usage: { input: 100, output: 30, cacheRead: 40, cacheWrite: 0, reasoning: 5 },
  includeUsage: true,
};
const counted = { ...noTokens, input: 100, output: 30, cacheRead: 40 };

const protocols = [
  { name: 'anthropic', dialect: anthropicDialect, reader: anthropicUsage },
  { name: 'openai responses', dialect: openAiResponsesDialect, reader: openAiResponsesUsage },
  { name: 'openai chat', dialect: openAiChatDialect, reader: openAiChatUsage },
  { name: 'google', dialect: googleDialect, reader: googleUsage },
];

const sse = 'text/event-stream; charset=utf-8';

function meter(reader: UsageReader, type: string, ...parts: (string | Uint8Array)[]) {
  const meter = openMeter(reader, type);
  for (const part of parts) meter.push(typeof part === 'string' ? Buffer.from(part) : part);
  return meter.counts();
}

describe.each(protocols)('the usage meter of $name', ({ dialect, reader }) => {
  const wire = Buffer.from(dialect.stream(reply).join(''));

  it('counts the same wherever the stream is split into chunks', () => {
    const cuts = fc.array(fc.nat(wire.length), { maxLength: 40 });
    fc.assert(
      fc.property(cuts, (places) => {
        const parts: Uint8Array[] = [];
        let from = 0;
        for (const at of [...places].sort((left, right) => left - right)) {
          parts.push(wire.subarray(from, at));
          from = at;
        }
        expect(meter(reader, sse, ...parts, wire.subarray(from))).toEqual(counted);
      }),
      { numRuns: 200 },
    );
  });

  it('counts a stream that arrives byte by byte', () => {
    expect(meter(reader, sse, ...[...wire].map((byte) => Uint8Array.of(byte)))).toEqual(counted);
  });

  it('counts an answer in one piece', () => {
    const whole = JSON.stringify(dialect.whole(reply));
    expect(meter(reader, 'application/json', whole.slice(0, 50), whole.slice(50))).toEqual(counted);
  });

  it('treats text that looks like usage as text', () => {
    const [first = ''] = dialect.stream({ ...reply, usage: { ...reply.usage, input: 1, output: 1, cacheRead: 0 } });
    expect(meter(reader, sse, first, 'data: "usage"\n\n').input).toBeLessThan(999);
  });

  it('counts the last event without its line end', () => {
    const events = dialect
      .stream(reply)
      .filter((event) => !event.includes('[DONE]') && !event.includes('message_stop'));
    expect(meter(reader, sse, events.join('').trimEnd())).toEqual(counted);
  });

  it('does not throw for input that is not an answer, and counts no tokens in broken JSON and invalid numbers', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.jsonValue().map((value) => JSON.stringify(value)),
          fc.string(),
        ),
        (text) => {
          expect(meter(reader, sse, `data: {"usage":${text},"usageMetadata":${text}}\n\n`)).toMatchObject({
            cacheWriteLong: 0,
          });
          meter(reader, 'application/json', text);
        },
      ),
    );
    expect(meter(reader, sse, 'data: {"usage":', '\n\n\0\n')).toEqual(noTokens);
    expect(meter(reader, 'application/json', '{"usage":')).toEqual(noTokens);
    for (const bad of ['-5', '1.5', '1e300', '"100"', 'null', 'true']) {
      const usage = `{"input_tokens":${bad},"prompt_tokens":${bad},"promptTokenCount":${bad},"output_tokens":${bad}}`;
      const event = `data: {"type":"message_delta","usage":${usage},"usageMetadata":${usage},"response":{"usage":${usage}}}\n\n`;
      expect(meter(reader, sse, event)).toEqual(noTokens);
    }
  });

  it('continues after an event that is too large to read', () => {
    const large = Buffer.alloc(17 * 1024 * 1024, 'x');
    expect(meter(reader, sse, 'data: {"usage":"', large, '"}\n\n', wire)).toEqual(counted);
  });
});

describe('the usage meter of Anthropic', () => {
  it('counts cache writes that live for an hour separately', () => {
    const creation = { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 4 };
    const usage = {
      input_tokens: 1,
      output_tokens: 2,
      cache_creation_input_tokens: 7,
      cache_read_input_tokens: null,
      cache_creation: creation,
    };
    expect(anthropicUsage.body({ usage })).toEqual({
      input: 1,
      output: 2,
      cacheRead: 0,
      cacheWrite: 7,
      cacheWriteLong: 4,
    });
  });

  it('counts the iterations of a compaction, which the totals leave out', () => {
    const iterations = [
      { type: 'compaction', input_tokens: 180, output_tokens: 4 },
      { type: 'message', input_tokens: 23, output_tokens: 1 },
      { type: 'advisor_message', input_tokens: 1000, output_tokens: 1000 },
    ];
    expect(anthropicUsage.body({ usage: { input_tokens: 23, output_tokens: 1, iterations } })).toMatchObject({
      input: 203,
      output: 5,
    });
  });
});

describe('the usage meter of OpenAI', () => {
  it('counts the usage of an answer that failed or stopped early', () => {
    const usage = { input_tokens: 5, output_tokens: 6 };
    for (const type of ['response.failed', 'response.incomplete']) {
      expect(openAiResponsesUsage.event(noTokens, { type, response: { usage } })).toMatchObject({
        input: 5,
        output: 6,
      });
    }
  });

  it('never counts less than zero tokens', () => {
    const usage = { input_tokens: 5, output_tokens: 6, input_tokens_details: { cached_tokens: 50 } };
    expect(openAiResponsesUsage.body({ usage })).toMatchObject({ input: 0, cacheRead: 50 });
  });
});

describe('the usage meter of Google', () => {
  it("counts the prompts of Google's own tools as input, and uses the last chunk of an unfinished array", () => {
    const chunk = (candidates: number) => ({
      usageMetadata: { promptTokenCount: 10, toolUsePromptTokenCount: 5, candidatesTokenCount: candidates },
    });
    expect(googleUsage.body([chunk(1), chunk(2)])).toMatchObject({ input: 15, output: 2 });
  });
});

it('the meter takes little memory for a line that arrives in single bytes', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const usedMb = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed / 1024 / 1024;
  };
  const meter = openMeter(anthropicUsage, sse);
  const bytes = Buffer.alloc(1024, 'x');
  const before = usedMb();
  for (let n = 0; n < 1_000_000; n += 1) meter.push(bytes.subarray(n % 1024, (n % 1024) + 1));
  expect(usedMb() - before).toBeLessThan(30);
  expect(meter.counts()).toEqual(noTokens);
});
