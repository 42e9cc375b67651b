/** Test support: a service with a fake GitHub, an App that the team has stored, and an installation that it has claimed. */
import type { Factory } from '@runyard/contract/factories/factories';
import type { GithubApp, GithubAuthorization, GithubInstallation } from '@runyard/contract/team/github';
import { afterAll, expect } from 'vitest';
import { startFakeGithub } from '../../../test/fakes/github/github.ts';
import type { FakeAccount } from '../../../test/fakes/github/objects.ts';
import { deliverToGithub } from '../src/edges/channels/github/deliver.ts';
import { type Deliverer, openDeliverer } from '../src/runs/subscriptions/deliverer.ts';
import { openGithubApi } from '../src/team/code-hosts/github-api.ts';
import { pollGithub } from '../src/triggers/github/poll.ts';
import { sendWords } from '../src/triggers/github/send-words.ts';
import { writeDeliveries } from '../src/triggers/starts/deliveries/start-deliveries.ts';
import { testAutomations } from './automations.ts';
import { newPerson, teamUidOf } from './people.ts';
import { openTestService } from './service.ts';

/** Starts a fake GitHub and a service that clones from it, and closes both after the tests of the file. */
export async function openGithubService() {
  const github = await startFakeGithub();
  const service = await openTestService({ env: { RUNYARD_CODE_HOST_URL: github.template } });
  const { deps, request } = service;
  const api = openGithubApi();
  const acme = github.account('acme', 'Organization');
  const site = github.repository(acme, 'site');
  const installed = github.install(acme);
  const teamUid = await teamUidOf(service);
  const factory = (await request<Factory>('POST', '/factory', { body: { name: 'Acme' } })).body;
  const automations = testAutomations(service, factory.uid);
  const opened: Deliverer[] = [];

  const post = async <T>(path: string, body: object, key?: string): Promise<T> => {
    const answer = await request<T>('POST', path, { body, ...(key ? { key } : {}) });
    if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`);
    return answer.body;
  };
  const app = await (async () => {
    const credential = await post<{ id: string }>('/code-hosts', {
      scope: 'team',
      kind: 'github_app',
      app_id: String(github.app.id),
      private_key: github.privateKey,
    });
    return await post<GithubApp>('/github/apps', {
      credential_id: credential.id,
      client_id: github.app.clientId,
      client_secret: github.clientSecret,
      webhook_secret: github.webhookSecret,
    });
  })();
  github.webhookUrl = `${service.baseUrl}${new URL(app.webhook_url).pathname}`;

  /** Goes through an authorization as a browser does. */
  const authorize = async (account: FakeAccount, body: object, key = service.key) => {
    const { url } = await post<{ url: string }>(`/github/apps/${app.uid}/authorization`, body, key);
    return Object.fromEntries(github.authorize(account, url));
  };
  const finish = (back: object, key = service.key) =>
    request<GithubAuthorization>('POST', '/github/authorization', { body: back, key });

  const channels = {
    github: (delivery: Parameters<typeof deliverToGithub>[1]) => deliverToGithub({ ...deps, api }, delivery),
  };
  const openOne = async () => {
    const resolve = () => Promise.reject(new Error('these tests send to no URL'));
    const rules = () => 'refused' as const;
    const made = await openDeliverer({ ...deps, rules, resolve, random: () => 0.5, channels });
    opened.push(made);
    return made;
  };
  afterAll(async () => {
    await Promise.all(opened.map((each) => each.close()));
    await github.close();
    expect(github.faults).toEqual([]);
  });

  return {
    github,
    service,
    deps,
    api,
    app,
    acme,
    site,
    installed,
    factory,
    automations,
    teamUid,
    authorize,
    finish,
    openDeliverer: openOne,
    /** A person of the team with an account on GitHub. `isLinked`: the person has linked it. */
    person: async (login: string, role: 'admin' | 'member' | 'viewer' = 'member', isLinked = true) => {
      const account = github.account(login);
      const person = await newPerson(service, teamUid, role);
      if (isLinked) {
        const linked = await finish(await authorize(account, { purpose: 'link' }, person.key), person.key);
        expect(linked.status, linked.text).toBe(200);
      }
      return { ...person, account };
    },
    /** Claims the installation as an owner of the organization. */
    claim: async (): Promise<GithubInstallation> => {
      const owner = github.account(`owner-${github.newId()}`);
      github.members.set(`${acme.id} ${owner.id}`, 'admin');
      const body = { purpose: 'claim', installation_id: String(installed.id), factory_uid: factory.uid };
      const claimed = await finish(await authorize(owner, body));
      if (!claimed.body.installation) throw new Error(claimed.text);
      return claimed.body.installation;
    },
    sendWords: () => sendWords({ ...deps, api, followUps: deps }),
    poll: async () => {
      await deps.db.query(`UPDATE github_apps SET polled_at = now() - interval '1 hour'`);
      const write = async (one: Parameters<typeof writeDeliveries>[1][number]) =>
        (await writeDeliveries(deps, [one]))[0] ?? ('busy' as const);
      await pollGithub({ ...deps, api, submit: deps, write });
    },
  };
}
