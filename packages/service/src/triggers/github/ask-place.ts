/** Sends requests to GitHub about a place, with a token that is valid only for its repository. */
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { GithubAnswer, GithubApi, GithubRequest, TokenScope } from '../../team/code-hosts/github-api.ts';
import { readApp, readAppKey } from './apps.ts';
import { githubHostOf, type HostSettings } from './hosts.ts';
import type { PlaceRow } from './places.ts';

export interface AskDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly api: GithubApi;
  readonly settings: HostSettings;
}

/** Sends a request. `permissions`: those of the token. */
export async function askForPlace(
  { db, vault, api, settings }: AskDeps,
  { app_uid: appUid, installation_id: installationId, repository_id: repositoryId }: PlaceRow,
  permissions: TokenScope['permissions'],
  request: GithubRequest,
): Promise<GithubAnswer> {
  const app = await readApp(db, appUid);
  const host = app && githubHostOf(settings, app.host);
  const key = host && (await readAppKey(db, vault, app, host));
  if (!key) return { kind: 'unavailable', message: 'the private key of the App cannot be read' };
  return await api.asInstallation(key, { installationId, repositoryId, permissions }, request);
}
