/**
 * Tests model requests from real sandboxes over the four real protocols of providers: tool calls, token counts, and images in prompts
 * and follow-ups.
 */
import type { RunItem } from '@runyard/contract/runs/runs';
import { describe, expect, test } from 'vitest';
import { type FakeModels, fakeModelKeys } from '../fakes/models.ts';
import { eventually, type System } from '../support/system.ts';

export const describeImages = (system: System, models: FakeModels) =>
  describe('the system (images)', () => {
    const png = (text: string) => Buffer.from(`\x89PNG\r\n\x1a\n${text}`, 'latin1').toString('base64');
    const attachment = (file_name: string, data: string) => ({
      file_name,
      mime_type: 'application/octet-stream',
      data,
    });
    const sentSince = (before: number) => models.requests.slice(before).map(({ body }) => JSON.stringify(body));
    const conversationOf = async (runId: string) =>
      JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`));

    const expectUsage = (run: RunItem) => expect(run.request_usage?.total_tokens).toBe(100 + 20 + 140 + 10);

    test.each(['anthropic/claude-opus-4-5', 'openai/gpt-5.2', 'google/gemini-2.5-pro'])(
      '%s calls a tool and gets the images of the request and of a follow-up; its tokens are counted and no provider key is shown',
      async (model_id) => {
        const before = models.requests.length;
        const runId = await system.createRun('Please run `echo from $((40 + 2)); ls attachments`.', {
          config: { model_id, idle_timeout_minutes: 5 },
          attachments: [attachment('one.bin', png('first image')), attachment('notes.png', 'bm90IGFuIGltYWdl')],
        });
        const run = await system.untilEnded(runId);
        expect(run, JSON.stringify(run.status_message)).toMatchObject({ state: 'SUCCEEDED' });
        expectUsage(run);
        expect(run.request_usage?.inference_cost_usd).toBeGreaterThan(0);
        const answer = await conversationOf(runId);
        for (const text of ['from 42', 'The command gave']) expect(answer).toContain(text);
        const first = sentSince(before);
        expect(first[0]).toContain(png('first image'));
        expect(first[0]).not.toContain('bm90IGFuIGltYWdl');
        const again = models.requests.length;
        await system.call('POST', `/agent/runs/${runId}/followups`, {
          message:
            'Please run `ls attachments; env; cat /proc/*/environ /proc/*/cmdline; cat attachments/one-2.bin | wc -c`.',
          attachments: [attachment('one.bin', png('second image'))],
        });
        await eventually('the answer to the follow-up', async () =>
          (await conversationOf(runId)).includes('one-2.bin'),
        );
        await system.untilEnded(runId);
        expect(sentSince(again)[0]).toContain(png('second image'));
        const conversation = await conversationOf(runId);
        expect(conversation).toContain('one-2.bin');
        for (const key of Object.values(fakeModelKeys)) expect(conversation).not.toContain(key);
        expect(await system.logs()).not.toContain(fakeModelKeys.anthropic);
      },
    );

    test('a local model calls a tool and gets only the paths of images, which the run reports; its tokens are counted', async () => {
      const before = models.requests.length;
      const runId = await system.createRun('Please run `echo from $((40 + 2)); ls attachments`.', {
        config: { model_id: 'local/fake-local' },
        attachments: [attachment('one.png', png('unseen'))],
      });
      const run = await system.untilEnded(runId);
      expect(run, JSON.stringify(run.status_message)).toMatchObject({ state: 'SUCCEEDED' });
      expectUsage(run);
      expect(run.request_usage?.inference_cost_usd).toBeUndefined();
      expect(sentSince(before)[0]).not.toContain(png('unseen'));
      expect(sentSince(before)[0]).toContain('/workspace/attachments/one.png');
      const conversation = await conversationOf(runId);
      for (const text of ['image_not_sent', 'from 42', 'The command gave']) expect(conversation).toContain(text);
    });
  });
