/** The way to GitHub and back. GitHub sends the browser back to the tab GitHub, with a code in the address. */
import type { Client } from '@runyard/client';

const teamKey = 'runyard-github-team';

/** Remembers the team, because the address to which GitHub sends the browser back does not name it. */
export const rememberTeam = (uid: string): void => sessionStorage.setItem(teamKey, uid);

/** Opens the page of GitHub on which a person authorizes the App. */
export function openGithub(teamUid: string, url: string): void {
  rememberTeam(teamUid);
  location.assign(url);
}

/** Sends the manifest to GitHub as a form, as GitHub expects it. */
export function postManifest(teamUid: string, url: string, manifest: string): void {
  rememberTeam(teamUid);
  const form = document.createElement('form');
  form.method = 'post';
  form.action = url;
  const field = document.createElement('input');
  field.type = 'hidden';
  field.name = 'manifest';
  field.value = manifest;
  form.append(field);
  document.body.append(form);
  form.submit();
}

/** The parameters that GitHub added to the address. */
export interface BackFromGithub {
  readonly code?: string | undefined;
  readonly state?: string | undefined;
  /** The installation that a person has just made. */
  readonly installationId?: string | undefined;
  readonly isCreated: boolean;
}

let taken: BackFromGithub | undefined;

/**
 * Takes what GitHub added to the address out of the address, so that a reload does not send a code again. Returns it at each call of this
 * page. If the browser comes back for another team, opens the page of that team instead.
 */
export function takeBack(teamUid: string): BackFromGithub {
  const query = new URLSearchParams(location.search);
  const [code, state] = [query.get('code') ?? undefined, query.get('state') ?? undefined];
  const installationId = query.get('installation_id') ?? undefined;
  if (code === undefined && installationId === undefined) return taken ?? { isCreated: false };
  const team = sessionStorage.getItem(teamKey);
  if (team !== null && team !== teamUid && !query.has('team')) {
    query.set('team', team);
    location.replace(`${location.pathname}?${query}`);
    return { isCreated: false };
  }
  taken = { code, state, installationId, isCreated: query.get('step') === 'created' };
  for (const name of ['code', 'state', 'installation_id', 'setup_action', 'step']) query.delete(name);
  history.replaceState(history.state, '', `${location.pathname}${query.size > 0 ? `?${query}` : ''}`);
  return taken;
}

let finishing: Promise<string> | undefined;

/** Finishes what the browser came back for, once. Returns a sentence about the outcome; null: there is nothing to finish. */
export function finish(client: Client, { code, state, isCreated }: BackFromGithub): Promise<string> | null {
  if (code === undefined || state === undefined) return null;
  finishing ??= (async () => {
    const body = { code, state };
    if (isCreated) {
      const app = await client.convertGithubApp({ body });
      return `${app.handle} is stored. Install it on GitHub next.`;
    }
    const { purpose, account, installation } = await client.finishGithubAuthorization({ body });
    return purpose === 'link'
      ? `You are ${account.login} on GitHub.`
      : `The installation of ${installation?.account.login ?? ''} belongs to the team.`;
  })();
  return finishing;
}
