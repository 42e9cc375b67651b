/** Tests that each configuration member of the public service has an effect, is refused with its path, or is listed as without effect. */
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { describe, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const team = await teamUidOf(service);

const create = (config: object, more: object = {}, key = service.key, headers: Record<string, string> = {}) =>
  service.request<{ run_id: string; errors?: { path: string }[] }>('POST', '/agent/runs', {
    key,
    headers,
    body: { prompt: 'Go.', config, ...more },
  });
const configOf = async (id: string): Promise<AmbientAgentConfig> =>
  (await service.ok<RunItem>('GET', `/agent/runs/${id}`)).agent_config ?? {};
const firstEvent = async (id: string) =>
  (await service.ok<{ events: TimelineEvent[] }>('GET', `/agent/runs/${id}/timeline`)).events[0];

describe('a member without effect', () => {
  test.each([
    ['memory_stores', [{ uid: 'm', access: 'read_only', instructions: 'i' }]],
    ['computer_use_enabled', true],
    ['computer_use_model_id', 'm'],
    ['session_sharing', { public_access: 'VIEWER' }],
    ['profile_id', 'p'],
    ['snapshot_disabled', true],
    ['snapshot_upload_timeout_secs', 5],
    ['snapshot_script_timeout_secs', 5],
    ['repository_head_overrides', [{ repo_name: 'r' }]],
    ['experimental', { a: 1 }],
  ])('is kept, and named in X-Ignored-Fields and in the first timeline event: %s', async (name, value) => {
    const { status, headers, body } = await create({ [name]: value });
    expect([status, headers.get('x-ignored-fields')]).toEqual([200, `"config.${name}"`]);
    expect((await firstEvent(body.run_id))?.payload).toEqual({ ignored_fields: [`config.${name}`] });
    expect(await configOf(body.run_id)).toMatchObject({ [name]: value });
  });

  test('that asks for nothing is not named', async () => {
    const nothing = {
      memory_stores: [],
      computer_use_enabled: false,
      computer_use_model_id: null,
      session_sharing: {},
      credential_strategy: null,
      runner_id: '',
      inference_providers: { aws: { disabled: true, role_arn: 'r' } },
      harness_auth_secrets: { claude_auth_secret_name: null },
    };
    const { status, headers, body } = await create(nothing);
    expect([status, headers.get('x-ignored-fields')]).toEqual([200, null]);
    expect((await firstEvent(body.run_id))?.payload).toBeUndefined();
  });

  test('is not refused if the client wants only known names, and an unknown one is', async () => {
    const strict = { prefer: 'handling=strict' };
    const known = await create({ computer_use_enabled: true }, {}, service.key, strict);
    expect([known.status, known.headers.get('x-ignored-fields')]).toEqual([200, '"config.computer_use_enabled"']);
    expect((await create({ snapshot_disabled: true }, {}, service.key, strict)).status).toBe(400);
  });
});

describe('a member that would change rights, money or the model', () => {
  test.each([
    ['inference_providers', { aws: { role_arn: 'arn:aws:iam::1:role/r' } }, 'config.inference_providers.aws'],
    ['inference_providers', { other: { key: 'k' } }, 'config.inference_providers.other'],
    ['runner_id', 'nowhere', 'config.runner_id'],
    ['credential_strategy', 'SOMEBODY', 'config.credential_strategy'],
  ])('is refused with its path: %s %j', async (name, value, path) => {
    const { status, body } = await create({ [name]: value });
    expect([status, body.errors?.map((each) => each.path)]).toEqual([400, [path]]);
  });

  test('is refused only for the harness that would use it', async () => {
    const harness_auth_secrets = { claude_auth_secret_name: 'KEY' };
    expect((await create({ harness_auth_secrets })).status).toBe(200);
    const { body } = await create({ harness_auth_secrets, harness: { type: 'claude' } });
    expect(body.errors).toContainEqual(
      expect.objectContaining({ path: 'config.harness_auth_secrets.claude_auth_secret_name' }),
    );
  });

  test('an empty model of a harness is the same as none', async () => {
    const { body } = await create({ harness: { type: 'oz', model_id: '' } });
    expect((await configOf(body.run_id)).harness).toMatchObject({ type: 'oz' });
  });
});

test('the credential strategy CREATOR is only for runs whose creator executes them', async () => {
  for (const credential_strategy of ['CREATOR', 'EXECUTOR', ''])
    expect((await create({ credential_strategy })).status, credential_strategy).toBe(200);
  const identity = await service.request<{ uid: string }>('POST', '/agent/identities', { body: { name: 'Bot' } });
  const asBot = { agent_identity_uid: identity.body.uid };
  expect((await create({ credential_strategy: 'EXECUTOR' }, asBot)).status).toBe(200);
  const { status, body } = await create({ credential_strategy: 'CREATOR' }, asBot);
  expect([status, body.errors?.[0]?.path]).toEqual([400, 'config.credential_strategy']);
});

describe('runner_id', () => {
  const newEnvironment = async (key = service.key) =>
    (await service.ok<{ uid: string }>('POST', '/agent/environments', { key, body: { config: { name: 'e' } } })).uid;

  test('names an environment or a pool of workers', async () => {
    const uid = await newEnvironment();
    expect(await configOf((await create({ runner_id: uid })).body.run_id)).toMatchObject({ environment_id: uid });
    await service.deps.db.query(
      `INSERT INTO worker_pools (team_id, name, owner_kind, owner_uid)
       SELECT id, 'mac', 'user', 'u' FROM teams WHERE uid = $1`,
      [team],
    );
    expect(await configOf((await create({ runner_id: 'mac' })).body.run_id)).toMatchObject({ worker_host: 'mac' });
    const { body } = await create({ runner_id: 'mac', worker_host: 'linux' });
    expect(body.errors?.[0]?.path).toBe('config.runner_id');
  });

  test('of a child run names nothing that the run above does not allow', async () => {
    const uid = await newEnvironment();
    const child = async (config: object, allowed: readonly string[]) => {
      const child_runs = { enabled: true, overrides: allowed };
      const { runToken } = await service.startExecution({ config: { child_runs } });
      const body = { prompt: 'Go.', config };
      return (await service.request('POST', '/harness-support/child-runs', { key: runToken, body })).status;
    };
    expect(await child({ runner_id: uid }, [])).toBe(403);
    expect(await child({ runner_id: 'mac' }, ['environment_id'])).toBe(403);
    expect(await child({ runner_id: uid }, ['environment_id'])).toBeLessThan(300);
  });

  test('names no environment that the caller may not use, and no pool of another team', async () => {
    const uid = await newEnvironment();
    const missing = await create({ runner_id: 'x'.repeat(22) }, {}, service.otherKey);
    const theirs = await create({ runner_id: uid }, {}, service.otherKey);
    expect([missing.status, theirs.status]).toEqual([403, 403]);
    expect((await create({ runner_id: 'mac' }, {}, service.otherKey)).status).toBe(400);
  });
});

test('a member is checked also if a person without rights, an agent key or a viewer sends it', async () => {
  const config = { inference_providers: { aws: { role_arn: 'r' } } };
  expect((await create(config, {}, await service.newKey({ kind: 'agent' }))).status).toBe(400);
  expect((await create(config, {}, (await newPerson(service, team, 'viewer')).key)).status).toBe(403);
});
