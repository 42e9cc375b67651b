/**
 * Applies random definitions one after the other. Checks that each dry run shows the same changes as the apply, and that the factory does
 * not differ from the files after the apply.
 */

import { githubEvents } from '@runyard/contract/webhooks/github-events';
import type { Webhook } from '@runyard/contract/webhooks/webhooks';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isLong } from '../../../../../../test/support/long.ts';
import { exportDefinition } from '../../../../../definitions/test/export-definition.ts';
import { testDefinitions } from '../../../../test/definitions.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { apply, automations, open, setSecret, stored, webhooks } = testDefinitions(service);

const tricky = fc.constantFrom(
  'null',
  '012',
  '1e3',
  '- a',
  'a: b',
  '"',
  '\\u0000',
  '{{x}}',
  '«redacted»',
  'ü 😀',
  ' b ',
  '\ufeffx',
  'x\ry',
  'a\n---\nb',
  '__proto_',
  'constructor',
);
const text = fc
  .oneof(tricky, fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }))
  .filter((each) => each.trim() !== '' && !each.includes('\u0000') && !each.includes('\r\n'));
const allNames = ['a', 'B', 'c.d', 'e-f', '1', '2', 'constructor', 'toString'];
const name = fc.constantFrom(...allNames);
/**
 * Returns the name of a webhook's secret. Each webhook has a separate secret, because a new webhook with the secret of a removed webhook
 * counts as a rename.
 */
const secretOf = (webhook: string): string => `OF_${webhook.replace(/\W/, '_')}`;
const names = (most: number) => fc.uniqueArray(name, { maxLength: most }).map((list) => list.toSorted());
const prompt = text.map((each) => each.trim());
const optional = <T extends Record<string, fc.Arbitrary<unknown>>>(model: T) => fc.record(model, { requiredKeys: [] });
const nullable = <T>(each: fc.Arbitrary<T>) => fc.oneof(each, fc.constant(null));
const secretNames = fc.uniqueArray(fc.constantFrom('ALERTS', 'TOKEN'), { maxLength: 2 });
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    text,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(text, tie('value'), { maxKeys: 2, noNullPrototype: true }),
  ),
})).value;
const values = fc.array(
  fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.double({ noNaN: true, min: -1e9, max: 1e9 })),
  { minLength: 1, maxLength: 3 },
);
const payload = fc.dictionary(
  text.filter((key) => !['in', 'not_in', 'exists'].includes(key)),
  fc.oneof(values, fc.record({ not_in: values, exists: fc.boolean() }), fc.record({ x: fc.record({ y: values }) })),
  { maxKeys: 2, noNullPrototype: true },
);
const matcher = fc.record(
  { in: fc.uniqueArray(fc.constantFrom('A', 'b/*'), { minLength: 1 }), not_in: fc.constant(['c']) },
  { requiredKeys: ['not_in'] },
);
const trigger = (uids: readonly string[]) =>
  fc.oneof(
    fc.record({
      provider: fc.constant('webhook'),
      event: fc.constant('received'),
      filter: fc.record(
        { webhook_ids: fc.shuffledSubarray([...uids], { minLength: 1 }), payload },
        { requiredKeys: ['webhook_ids'] },
      ),
    }),
    fc.constantFrom(...Object.keys(githubEvents)).map((event) => ({ provider: 'github', event })),
    fc.record({
      provider: fc.constant('github'),
      event: fc.constant('push'),
      filter: fc.record({ branches: matcher }),
    }),
    fc.record(
      {
        provider: fc.constant('linear'),
        event: text,
        filter: fc.dictionary(text, json, { maxKeys: 2, noNullPrototype: true }),
      },
      { requiredKeys: ['provider', 'event'] },
    ),
    fc.record({
      provider: fc.constant('schedule'),
      event: fc.constant('cron_fired'),
      schedule: fc.record(
        {
          name: fc.constantFrom('x', 'y', 'z', 'w'),
          cron: fc.constantFrom('0 9 * * 1-5', '@daily', '@every 90m', ' 1 2 * * *'),
          timezone: fc.constantFrom('UTC', 'europe/berlin'),
        },
        { requiredKeys: ['name', 'cron'] },
      ),
    }),
  );
const triggers = (uids: readonly string[]) =>
  fc.uniqueArray(trigger(uids), {
    minLength: 1,
    maxLength: 3,
    selector: (each) => ('schedule' in each ? each.schedule.name : JSON.stringify(each)),
  });

/** Things of the team that the definitions refer to by name. */
interface Things {
  readonly environment: string;
  readonly server: string;
  readonly webhook: string;
}

const execution = (runners: readonly string[], { environment, server }: Things) =>
  fc.tuple(
    optional({
      environmentId: fc.constant(environment),
      secrets: secretNames,
      skills: fc.constant(['acme/handbook:greet']),
      mcpServers: fc.dictionary(fc.constantFrom('m', 'n.o', 'constructor'), fc.constant({ warpId: server }), {
        maxKeys: 2,
        noNullPrototype: true,
      }),
      workerHost: nullable(fc.constantFrom('mac', 'w-1')),
      ...(runners.length > 0 ? { runner: fc.constantFrom(...runners) } : {}),
    }),
    fc.oneof(
      fc.record({ model: fc.constant('runbook') }),
      fc.record({
        harness: fc.record(
          { type: fc.constant('oz'), model: fc.constant('runbook'), reasoningLevel: fc.constant(null) },
          { requiredKeys: ['type', 'model'] },
        ),
      }),
    ),
  );
const merged = ([rest, model]: readonly [object, object]) => ({ ...rest, ...model });
const overriding = ([rest, model]: readonly [object, object]) => fc.constantFrom(rest, { ...rest, ...model });

const definition = (things: Things) =>
  fc
    .record({
      agents: names(3),
      automations: names(3),
      webhooks: names(3),
      runners: names(2),
      skills: names(0),
      environments: names(2),
    })
    .chain((own) => {
      const agents = own.agents.length === 0 ? ['foreman'] : own.agents;
      const each = <T>(list: readonly string[], make: (name: string, at: number) => fc.Arbitrary<T>) =>
        fc.tuple(...list.map(make));
      return fc.record({
        factory: fc
          .tuple(
            optional({
              description: text,
              alias: fc.constantFrom('x', 'ü y'),
              secrets: secretNames,
              mcpServers: fc.constant({ all: { warpId: things.server } }),
            }),
            text,
            execution(own.runners, things).map(merged),
          )
          .map(([rest, called, agentDefaults]) => ({
            ...rest,
            name: called,
            repositories: [{ owner: 'acme', name: 'site' }],
            agentDefaults,
          })),
        agents: each(agents, (called, at) =>
          fc
            .tuple(
              optional({ description: text }),
              execution(own.runners, things).chain(overriding),
              fc.oneof(prompt, fc.constant('')),
            )
            .map(([rest, how, body]) => ({
              ...rest,
              ...how,
              name: called,
              agentType: at === 0 ? 'FOREMAN' : 'CUSTOM',
              prompt: body,
            })),
        ),
        automations: each(own.automations, (called) =>
          fc
            .tuple(
              optional({
                agent: fc.constantFrom(...agents),
                concurrencyKey: fc.constant('data.id'),
                overlap: fc.constantFrom('skip', 'allow', 'queue'),
              }),
              execution(own.runners, things).chain(overriding),
              fc.record({ enabled: fc.boolean(), triggers: triggers([things.webhook]), prompt }),
            )
            .map(([rest, how, needed]) => ({ ...rest, ...how, ...needed, name: called })),
        ),
        webhooks: each(own.webhooks, (called) =>
          fc
            .record(
              {
                enabled: fc.boolean(),
                secretName: fc.constant(secretOf(called)),
                deliveryIdHeader: fc.constantFrom('X-Id', 'x-other'),
                deliveryIdPath: fc.constantFrom('id', 'event.id'),
                eventHeader: fc.constantFrom('X-Event', 'x-event-key'),
                duplicateWindowSeconds: fc.constantFrom(0, 60),
              },
              { requiredKeys: ['enabled', 'secretName'] },
            )
            .map((rest) => ({ ...rest, name: called, authMode: called === '1' ? 'url_token' : 'token' })),
        ),
        runners: each(own.runners, (called) =>
          optional({
            description: text,
            setupCommands: fc.array(text, { maxLength: 2 }),
            instanceShape: fc.constant({ vcpus: 2, memoryGb: 4 }),
          }).map((rest) => ({ ...rest, name: called, platform: { linux: { dockerImage: 'node:24' } } })),
        ),
        environments: each(own.environments, (called) =>
          optional({ description: text, setup_commands: fc.array(text, { maxLength: 2 }) }).map((rest) => ({
            name: called,
            config: { ...rest, name: called },
          })),
        ),
        skills: fc.constantFrom([], [{ path: 'skills/s/SKILL.md', text: '---\nname: s\ndescription: d\n---\n' }]),
      });
    });

type Named = readonly { readonly name: string; readonly uid: string }[];
const uidsOf = (list: Named) => new Map(list.map((each) => [each.name, each.uid]));

/** Changes that people make without files. An apply reverts each of them. */
const edits = [
  'disable webhook',
  'rename webhook',
  'delete webhook',
  'change automation',
  'delete automation',
] as const;

async function edit(path: string, kind: (typeof edits)[number]): Promise<void> {
  const webhook = (await webhooks()).findLast((each) => each.name !== 'own');
  const automation = (await automations()).at(-1);
  const at = kind.endsWith('webhook') ? `webhooks/${webhook?.uid}` : `automations/${automation?.uid}`;
  if (kind.endsWith('webhook') ? !webhook : !automation) return;
  const [method, suffix, body] = {
    'disable webhook': ['POST', '/disable', {}] as const,
    'rename webhook': ['PATCH', '', { name: 'renamed' }] as const,
    'delete webhook': ['DELETE', '', undefined] as const,
    'change automation': ['PUT', '', { name: 'renamed', prompt: 'other', triggers: automation?.triggers }] as const,
    'delete automation': ['DELETE', '', undefined] as const,
  }[kind];
  await service.ok(method, `${path}/${at}${suffix}`, body === undefined ? {} : { body });
}

/** Makes a dry run of the files, applies them, and expects that nothing differs from the files afterwards. */
async function applyAsPlanned(files: Readonly<Record<string, string>>): Promise<void> {
  const plan = await apply(files, { dry_run: true });
  const { dry_run: _dry, version: _version, ...done } = await apply(files);
  expect(plan).toMatchObject(done);
  const after = await stored();
  expect(after.drift).toEqual([]);
  const exported = Object.fromEntries(after.files.map((file) => [file.path, file.content]));
  expect(await apply(exported, { dry_run: true })).toMatchObject({ changes: [], drift: [] });
}

test('a dry run shows what the apply does, and afterwards neither the same files nor their export change anything', async () => {
  const path = await open();
  for (const secret of ['TOKEN', ...allNames.map(secretOf)]) await setSecret(secret, `value-of-the-secret-${secret}`);
  const made = async <T>(at: string, body: object) => await service.ok<T>('POST', at, { body });
  const environment = (await made<{ uid: string }>('/agent/environments', { config: { name: 'e' } })).uid;
  const server = (await made<{ id: string }>('/agent/mcp-servers', { name: 'm', command: 'cat' })).id;
  const webhook = (await made<Webhook>(`${path}/webhooks`, { name: 'own' })).uid;
  await fc.assert(
    fc.asyncProperty(
      definition({ environment, server, webhook }),
      fc.subarray([...edits]),
      async (generated, edited) => {
        const before = [uidsOf(await webhooks()), uidsOf(await automations())];
        const files = Object.fromEntries(
          exportDefinition(generated as unknown as FactoryDefinition).map((file) => [file.path, file.content]),
        );
        await applyAsPlanned(files);
        const present: readonly Named[] = [await webhooks(), await automations()];
        for (const [index, list] of present.entries())
          for (const { name: called, uid } of list) expect(before[index]?.get(called) ?? uid).toBe(uid);
        for (const kind of edited) await edit(path, kind);
        await applyAsPlanned(files);
      },
    ),
    { numRuns: isLong ? 30 : 6 },
  );
});
