import type { TeamAutomation, TeamWebhook } from '@runyard/contract/automations/team-lists';
import type { FactoryAgent } from '@runyard/contract/factories/factories';
import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { expect, test } from 'vitest';
import { mapParts } from './map-parts.ts';

const webhook = (uid: string, scheme?: string) =>
  ({
    uid,
    name: uid,
    auth_mode: 'token',
    signature_scheme: scheme,
    enabled: true,
    last_24_hours: { accepted: 2 },
  }) as unknown as TeamWebhook;
const automation = (uid: string, triggers: object[], more: object = {}) =>
  ({ uid, name: uid, enabled: true, triggers, last_24_hours: { started: 1 }, ...more }) as unknown as TeamAutomation;
const onGithub = { provider: 'github', event: 'issue_opened' };
const onWebhook = (...ids: string[]) => ({ provider: 'webhook', event: 'received', filter: { webhook_ids: ids } });
const daily = { provider: 'schedule', event: 'cron_fired', schedule: { cron: '0 3 * * *', timezone: 'Europe/Paris' } };
const base = { factoryUid: 'f', agents: [{ name: 'lead', agent_type: 'FOREMAN' }] as FactoryAgent[] };

test('webhooks are joined to the automations that they feed, also those of GitHub', () => {
  const { sources, starts } = mapParts({
    ...base,
    webhooks: [webhook('alerts'), webhook('hub', 'github')],
    automations: [automation('a', [onGithub, onGithub]), automation('b', [onWebhook('alerts')])],
  });
  expect(sources.map(({ id, note }) => [id, note])).toEqual([
    ['alerts', 'token, 2 events in 24 h'],
    ['hub', 'github, 2 events in 24 h'],
  ]);
  expect(starts).toEqual([
    { from: 'hub', to: 'a', isOff: false },
    { from: 'alerts', to: 'b', isOff: false },
  ]);
});

test('a trigger of GitHub without a webhook is marked, and times of schedules have their expression', () => {
  const { sources } = mapParts({ ...base, webhooks: [], automations: [automation('a', [onGithub, daily])] });
  expect(sources).toMatchObject([
    { name: 'GitHub', isWrong: true, note: 'no webhook has the scheme github' },
    { name: '0 3 * * *', isWrong: false, note: 'times in Europe/Paris' },
  ]);
});

test('an automation is joined to the schedules of the team that it names', () => {
  const onSchedules = { provider: 'schedule', event: 'cron_fired', filter: { schedule_ids: ['s', 'gone'] } };
  const automations = [
    automation('a', [onSchedules]),
    automation('b', [{ ...onSchedules, filter: { schedule_ids: { in: ['s'] } } }]),
  ];
  const schedule = { id: 's', name: 'Nightly', cron_schedule: '@daily', enabled: false } as ScheduledAgentItem;
  const { sources, starts } = mapParts({ ...base, webhooks: [], automations, schedules: [schedule] });
  expect(sources).toMatchObject([
    { name: 'Nightly', note: 'schedule, @daily', isOff: true, isWrong: false, to: '/schedules/s' },
    { name: 'gone', note: 'the team has no such schedule', isWrong: true },
  ]);
  expect(starts.map(({ from, to }) => [from, to])).toEqual([
    ['s', 'a'],
    ['gone', 'a'],
    ['s', 'b'],
  ]);
  expect(mapParts({ ...base, webhooks: [], automations }).sources.map(({ isWrong }) => isWrong)).toEqual([
    false,
    false,
  ]);
});

test('an automation without an agent gives its runs to the foreman of the definition', () => {
  const automations = [automation('a', [daily]), automation('b', [daily], { agent: 'reviewer', problems: ['x'] })];
  const parts = mapParts({ ...base, webhooks: [], automations });
  expect(parts.agents.map(({ name, note }) => [name, note])).toEqual([
    ['lead', 'foreman'],
    ['reviewer', 'agent'],
  ]);
  expect(parts.gives.map(({ from, to }) => [from, to])).toEqual([
    ['a', 'lead'],
    ['b', 'reviewer'],
  ]);
  expect(parts.automations.map(({ isWrong }) => isWrong)).toEqual([false, true]);
});
