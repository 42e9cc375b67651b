import { compare } from '@runyard/contract/factories/files/faults';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { exportDefinition } from '../test/export-definition.ts';
import type { FactoryDefinition } from './definition.ts';
import { planChanges } from './plan-changes.ts';
import { readDefinition } from './read-definition.ts';

/** Texts that a reader of YAML or Markdown could interpret wrongly. */
const tricky = fc.constantFrom(
  'null',
  '~',
  'true',
  'yes',
  '012',
  '0x1f',
  '1e3',
  '.inf',
  '- a',
  'a: b',
  '#c',
  '&a',
  '*a',
  '!t',
  '%d',
  '@x',
  '`y',
  '---',
  '...',
  'a\n---\nb',
  '{a',
  '[b',
  '"',
  "'",
  '\\',
  '| x',
  '> y',
  '? z',
  ' lead',
  'trail ',
  'tab\tx',
  'ü 😀',
  '\ufeffx',
  'a\u0085b',
  'x\ry',
  'a\n\n b\n',
  '<<',
  '2026-01-01',
);
const text = fc
  .oneof(tricky, fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }))
  .filter((each) => each.trim() !== '' && !each.includes('\u0000') && !each.includes('\r\n'));
const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,10}$/);
const prompt = fc
  .array(text, { minLength: 1, maxLength: 3 })
  .map((lines) => lines.join('\n'))
  .map((each) => each.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd())
  .filter((each) => each.trim() !== '' && !each.includes('\r\n'));
const optional = <T extends Record<string, fc.Arbitrary<unknown>>>(model: T) => fc.record(model, { requiredKeys: [] });
const secrets = fc.uniqueArray(text, { maxLength: 3 });
const mcpServers = fc.dictionary(fc.stringMatching(/^[A-Za-z0-9_.-]{1,8}$/), fc.record({ warpId: text }), {
  maxKeys: 2,
  noNullPrototype: true,
});
const uid = fc.stringMatching(/^[A-Za-z0-9]{22}$/);
const execution = (runners: readonly string[]) =>
  fc
    .tuple(
      optional({
        environmentId: uid,
        secrets,
        mcpServers,
        workerHost: fc.oneof(text, fc.constant(null)),
        ...(runners.length > 0 ? { runner: fc.constantFrom(...runners) } : {}),
      }),
      fc.oneof(
        fc.record({ model: text }),
        fc.record({ harness: fc.record({ type: fc.constant('codex'), model: text }) }),
      ),
    )
    .map(([rest, model]) => ({ ...rest, ...model }));
const values = fc.array(
  fc.oneof(
    text,
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.double({ noNaN: true, min: -1e9, max: 1e9 }).map((each) => each + 0 || 0),
  ),
  { minLength: 1, maxLength: 3 },
);
/** Excludes `__proto__`, which fast-check generates often, because requests and files cannot have a member with this name. */
const memberName = text.filter((each) => each !== '__proto__');
const payload = fc.dictionary(
  memberName.filter((key) => key !== 'in'),
  fc.oneof(values, fc.record({ not_in: values }), fc.record({ x: values })),
  { maxKeys: 3, noNullPrototype: true },
);
const trigger = fc.oneof(
  fc.record({
    provider: fc.constant('webhook'),
    event: fc.constant('received'),
    filter: fc.record({ webhook_ids: fc.array(uid, { minLength: 1, maxLength: 2 }), payload }),
  }),
  fc.record({
    provider: fc.constant('github'),
    event: fc.constant('push'),
    filter: fc.record({ branches: fc.record({ not_in: fc.array(text, { minLength: 1, maxLength: 2 }) }) }),
  }),
  fc.record({
    provider: fc.constant('linear'),
    event: text,
    filter: fc.dictionary(memberName, fc.array(text), { maxKeys: 2, noNullPrototype: true }),
  }),
  fc.record({
    provider: fc.constant('schedule'),
    event: fc.constant('cron_fired'),
    schedule: fc.record({ cron: fc.constantFrom('0 9 * * 1-5', '@daily', '@every 90m') }),
  }),
);
const names = (most: number) =>
  fc
    .uniqueArray(name, { maxLength: most, selector: (each) => each.toLowerCase() })
    .map((list) => list.toSorted(compare));

const definition = fc
  .record({
    agents: names(3),
    automations: names(2),
    webhooks: names(2),
    runners: names(2),
    skills: names(2),
    environments: names(2),
  })
  .chain(({ agents, automations, webhooks, runners, skills, environments }) => {
    const all = agents.length === 0 ? ['foreman'] : agents;
    const each = <T>(list: readonly string[], make: (name: string, at: number) => fc.Arbitrary<T>) =>
      fc.tuple(...list.map(make));
    return fc.record({
      factory: fc
        .tuple(
          optional({ description: text, secrets, mcpServers }),
          fc.record({
            name: text,
            repositories: fc.uniqueArray(fc.record({ owner: name, name }), {
              maxLength: 2,
              selector: ({ owner, name: repo }) => `${owner}/${repo}`.toLowerCase(),
            }),
            agentDefaults: execution(runners),
          }),
        )
        .map(([rest, needed]) => ({ ...rest, ...needed })),
      agents: each(all, (own, at) =>
        fc
          .tuple(optional({ description: text }), execution(runners), fc.oneof(prompt, fc.constant('')))
          .map(([rest, how, body]) => ({
            ...rest,
            ...how,
            name: own,
            agentType: at === 0 ? 'FOREMAN' : 'CUSTOM',
            prompt: body,
          })),
      ),
      automations: each(automations, (own) =>
        fc
          .tuple(
            optional({ agent: fc.constantFrom(...all), concurrencyKey: text, overlap: fc.constant('skip') }),
            fc.record({
              enabled: fc.boolean(),
              triggers: fc.uniqueArray(trigger, { minLength: 1, maxLength: 3, selector: ({ provider }) => provider }),
              prompt,
            }),
          )
          .map(([rest, needed]) => ({ ...rest, ...needed, name: own })),
      ),
      webhooks: each(webhooks, (own) =>
        fc
          .record({ enabled: fc.boolean(), secretName: text, authMode: fc.constantFrom('token', 'url_token') })
          .map((rest) => ({ ...rest, name: own })),
      ),
      runners: each(runners, (own) =>
        optional({ description: text, setupCommands: fc.array(text, { maxLength: 2 }) }).map((rest) => ({
          ...rest,
          name: own,
          platform: { linux: { dockerImage: 'x' } },
        })),
      ),
      environments: each(environments, (own) =>
        optional({
          description: text,
          setup_commands: fc.array(text, { maxLength: 2 }),
          variables: fc.constant({ STAGE: 'test' }),
        }).map((rest) => ({ name: own, config: { ...rest, name: own } })),
      ),
      skills: fc.constant(
        skills
          .map((own) => ({ path: `skills/${own}/SKILL.md`, text: '---\nname: x\n---\n\ntext  \n' }))
          .toSorted((a, b) => compare(a.path, b.path)),
      ),
    });
  });

test('files that are written from a definition are read as the same definition', () => {
  fc.assert(
    fc.property(definition, (generated) => {
      const wanted = generated as unknown as FactoryDefinition;
      const files = exportDefinition(wanted);
      const read = readDefinition(files);
      if (!read.ok) throw new Error(JSON.stringify({ faults: read.faults, files }));
      expect(read.definition).toEqual(wanted);
      expect(planChanges(wanted, read.definition)).toEqual({ changes: [], refusals: [] });
      expect(exportDefinition(read.definition)).toEqual(files);
    }),
    { numRuns: 50 },
  );
});
