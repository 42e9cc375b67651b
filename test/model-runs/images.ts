/** Images that come with prompts and follow-ups reach models over the four real wire protocols, from real sandboxes. */
import { describe, expect, test } from 'vitest';
import type { FakeModels } from '../fakes/models.ts';
import { eventually, type System } from '../support/system.ts';

export const describeImages = (system: System, models: FakeModels) =>
  describe('images', () => {
    const png = (text: string) => Buffer.from(`\x89PNG\r\n\x1a\n${text}`, 'latin1').toString('base64');
    const attachment = (file_name: string, data: string) => ({
      file_name,
      mime_type: 'application/octet-stream',
      data,
    });
    const sentSince = (before: number) => models.requests.slice(before).map(({ body }) => JSON.stringify(body));
    const conversationOf = async (runId: string) =>
      JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`));

    test.each(['anthropic/claude-opus-4-5', 'openai/gpt-5.2', 'google/gemini-2.5-pro'])(
      'sends %s the images of the request and of a follow-up, whatever their names are',
      async (model_id) => {
        const before = models.requests.length;
        const runId = await system.createRun('Please run `ls attachments`.', {
          config: { model_id, idle_timeout_minutes: 5 },
          attachments: [attachment('one.bin', png('first image')), attachment('notes.png', 'bm90IGFuIGltYWdl')],
        });
        expect((await system.untilEnded(runId)).state).toBe('SUCCEEDED');
        const first = sentSince(before);
        expect(first[0]).toContain(png('first image'));
        expect(first[0]).not.toContain('bm90IGFuIGltYWdl');
        const again = models.requests.length;
        await system.call('POST', `/agent/runs/${runId}/followups`, {
          message: 'Please run `ls attachments; cat attachments/one-2.bin | wc -c`.',
          attachments: [attachment('one.bin', png('second image'))],
        });
        await eventually('the answer to the follow-up', async () =>
          (await conversationOf(runId)).includes('one-2.bin'),
        );
        await system.untilEnded(runId);
        expect(sentSince(again)[0]).toContain(png('second image'));
        expect(await conversationOf(runId)).toContain('one-2.bin');
      },
      60_000,
    );

    test('gives the path of the image to a model that cannot see images, and says so in the run', async () => {
      const before = models.requests.length;
      const runId = await system.createRun('Please run `ls attachments`.', {
        config: { model_id: 'local/fake-local' },
        attachments: [attachment('one.png', png('unseen'))],
      });
      expect((await system.untilEnded(runId)).state).toBe('SUCCEEDED');
      expect(sentSince(before)[0]).not.toContain(png('unseen'));
      expect(sentSince(before)[0]).toContain('/workspace/attachments/one.png');
      expect(await conversationOf(runId)).toContain('image_not_sent');
    }, 60_000);
  });
