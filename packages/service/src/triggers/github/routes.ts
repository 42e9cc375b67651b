/** The routes with which people store Apps, link their accounts and claim installations. */
import { maxFactoryWebhooks, maxGithubInstallations } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { GithubApp } from '@runyard/contract/team/github';
import { isAtLeast } from '@runyard/contract/wire/access';
import { invalid, notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { serve } from '../../team/access/serve.ts';
import { newUid } from '../../team/access/teams/uid.ts';
import { readFactory } from '../factories/factories.ts';
import { type AppRow, listApps, openSecrets, readApp, readAppKey, removeApp } from './apps.ts';
import {
  authorizationUrl,
  beginAttempt,
  type ProofRefusal,
  proveAccount,
  proveInstallation,
  readAttempt,
} from './authorize.ts';
import { githubHostOf } from './hosts.ts';
import {
  ClaimedMeanwhile,
  type ClaimRefusal,
  claimInstallation,
  type InstallationRow,
  listInstallations,
  releaseInstallation,
  toInstallation,
} from './installations.ts';
import { isPublic, pagePath, permissions, planOf } from './manifest.ts';
import { type GithubAccount, linkPerson, readAccountsOf, unlinkPerson } from './people.ts';
import { away, isRefusal, noHost, type StoreAppDeps, storeCreatedApp, storeExistingApp } from './store-app.ts';

export interface GithubRouteDeps extends StoreAppDeps {
  baseUrl(): string;
  webhookBaseUrl(): string;
}

const proofs: Readonly<Record<ProofRefusal, () => Refusal>> = {
  refused: () =>
    refuse('not_authorized', {
      detail:
        'Your account on GitHub does not administer this installation. It must be the account of the installation, or an owner of its organization.',
    }),
  wrong_code: () => invalid([{ path: 'code', message: 'GitHub does not accept it; begin again' }]),
  away,
  no_installation: () => notFound('installation'),
};

const claims: Readonly<Record<ClaimRefusal, () => Refusal>> = {
  claimed: () => refuse('conflict', { detail: 'A team has claimed this installation already. It can release it.' }),
  no_factory: () => notFound('factory'),
  too_many: () =>
    refuse('conflict', { detail: `A team has at most ${maxGithubInstallations} installations; release one first.` }),
  too_many_webhooks: () =>
    refuse('conflict', { detail: `A factory has at most ${maxFactoryWebhooks} webhooks; delete one.` }),
};

const wrongState = (): Refusal =>
  invalid([{ path: 'state', message: 'is not yours here, or is older than 15 minutes; begin again' }]);

const byOf = ({ creator, teamId }: Principal) => ({ userUid: creator.uid, teamId });

/** Returns the webhook URL of an App. */
export const webhookUrlOf = (baseUrl: string, appUid: string): string => `${baseUrl}/webhooks/github/${appUid}`;

export function githubRoutes(deps: GithubRouteDeps): readonly ServedRoute[] {
  const { db, vault, api, settings } = deps;
  const redirectUri = () => `${deps.baseUrl()}${pagePath}`;
  const noApp = () => notFound('GitHub App');

  const toApp = (
    app: AppRow,
    installations: readonly InstallationRow[],
    linked: ReadonlyMap<string, GithubAccount>,
  ): GithubApp => {
    const account = linked.get(app.uid);
    const web = githubHostOf(settings, app.host)?.web ?? `https://${app.host}`;
    return {
      uid: app.uid,
      host: app.host,
      app_id: app.app_id,
      handle: `@${app.slug}`,
      credential_id: app.credential_id,
      install_url: `${web}/apps/${app.slug}/installations/new`,
      webhook_url: webhookUrlOf(deps.webhookBaseUrl(), app.uid),
      installations: installations.filter((each) => each.app_uid === app.uid).map(toInstallation),
      ...(account ? { linked_account: account } : {}),
      ...(app.poll_problem === null ? {} : { poll_problem: app.poll_problem }),
      created_at: app.created_at,
    };
  };
  const answerOf = (made: AppRow | Refusal): GithubApp | Refusal =>
    isRefusal(made) ? made : toApp(made, [], new Map());

  /** Finishes a claim, after the account has been proved. */
  async function claim(
    principal: Principal,
    app: AppRow,
    proved: { readonly token: string; readonly account: GithubAccount },
    { installationId = '', factoryUid = '' }: { installationId?: string | undefined; factoryUid?: string | undefined },
  ): Promise<InstallationRow | Refusal> {
    if (!isAtLeast(principal.role, 'admin'))
      return refuse('not_authorized', { detail: 'Only administrators of the team can claim installations.' });
    const host = githubHostOf(settings, app.host);
    const key = host && (await readAppKey(db, vault, app, host));
    if (!key) return noApp();
    const account = await proveInstallation(api, key, proved, installationId);
    if (typeof account === 'string') return proofs[account]();
    const of = { appUid: app.uid, installationId, account, factoryUid };
    try {
      return await db.transaction(async (tx) => {
        const made = await claimInstallation(tx, vault, principal, of);
        return typeof made === 'string' ? claims[made]() : made;
      });
    } catch (error) {
      if (error instanceof ClaimedMeanwhile) return claims.claimed();
      throw error;
    }
  }

  return [
    serve(routes.listGithubApps, async ({ principal }) => {
      const [apps, installations, linked] = await Promise.all([
        listApps(db, principal.teamId),
        listInstallations(db, principal.teamId),
        readAccountsOf(db, principal.creator.uid),
      ]);
      return { apps: apps.map((app) => toApp(app, installations, linked)) };
    }),

    serve(routes.createGithubApp, async ({ principal, body }) =>
      answerOf(await storeExistingApp(deps, principal, body)),
    ),

    serve(routes.planGithubApp, async ({ principal, body }) => {
      const host = githubHostOf(settings);
      if (!host) return noHost();
      const appUid = newUid();
      const { state } = beginAttempt(vault, { purpose: 'create', ...byOf(principal), appUid }, Date.now());
      const webhookUrl = webhookUrlOf(deps.webhookBaseUrl(), appUid);
      const plan = planOf(host, body, { baseUrl: deps.baseUrl(), webhookUrl, state });
      return { ...plan, permissions: [...permissions], has_public_address: isPublic(webhookUrl) };
    }),

    serve(routes.convertGithubApp, async ({ principal, body: { code, state } }) => {
      const attempt = readAttempt(vault, state, byOf(principal), Date.now());
      if (attempt?.purpose !== 'create') return wrongState();
      return answerOf(await storeCreatedApp(deps, principal, attempt, code));
    }),

    serve(routes.deleteGithubApp, async ({ principal, params: { appUid } }) => {
      const wasThere = await db.transaction(async (tx) => {
        for (const { uid, app_uid } of await listInstallations(tx, principal.teamId))
          if (app_uid === appUid) await releaseInstallation(tx, principal, uid);
        return await removeApp(tx, principal, appUid);
      });
      return wasThere ? { success: true as const } : noApp();
    }),

    serve(routes.authorizeGithub, async ({ principal, params: { appUid }, body }) => {
      const { purpose, installation_id: installationId, factory_uid: factoryUid } = body;
      const app = await readApp(db, appUid, principal.teamId);
      const host = app && githubHostOf(settings, app.host);
      if (!host) return noApp();
      if (purpose === 'claim' && !(await readFactory(db, principal.teamId, factoryUid ?? '')))
        return notFound('factory');
      const begun = beginAttempt(
        vault,
        { purpose, ...byOf(principal), appUid, installationId, factoryUid },
        Date.now(),
      );
      return { url: authorizationUrl(host, { clientId: app.client_id, redirectUri: redirectUri() }, begun) };
    }),

    serve(routes.finishGithubAuthorization, async ({ principal, body: { code, state } }) => {
      const attempt = readAttempt(vault, state, byOf(principal), Date.now());
      if (attempt === null || attempt.purpose === 'create') return wrongState();
      const app = await readApp(db, attempt.appUid, principal.teamId);
      const host = app && githubHostOf(settings, app.host);
      if (!host) return noApp();
      const { clientSecret } = openSecrets(vault, app);
      const client = { clientId: app.client_id, clientSecret, redirectUri: redirectUri() };
      const proved = await proveAccount(api, host, client, { attempt, code });
      if (typeof proved === 'string') return proofs[proved]();
      const { id, login } = proved.account;
      const answer = { purpose: attempt.purpose, account: { id, login } };
      if (attempt.purpose === 'link') {
        const isLinked = await db.transaction((tx) => linkPerson(tx, principal, app.uid, proved.account));
        const detail = `Somebody else has linked ${login} already.`;
        return isLinked ? answer : refuse('conflict', { detail });
      }
      const claimed = await claim(principal, app, proved, attempt);
      return isRefusal(claimed) ? claimed : { ...answer, installation: toInstallation(claimed) };
    }),

    serve(routes.unlinkGithub, async ({ principal, params: { appUid } }) => {
      if (!(await readApp(db, appUid, principal.teamId))) return noApp();
      const wasThere = await db.transaction((tx) => unlinkPerson(tx, principal, appUid));
      return wasThere ? { success: true as const } : notFound('link');
    }),

    serve(routes.releaseGithubInstallation, async ({ principal, params: { installationUid } }) => {
      const wasThere = await db.transaction((tx) => releaseInstallation(tx, principal, installationUid));
      return wasThere ? { success: true as const } : notFound('installation');
    }),
  ];
}
