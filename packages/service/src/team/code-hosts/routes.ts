import { maxCodeHostCredentials } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { Settings } from '@runyard/contract/settings/settings';
import type { CreateCodeHostCredentialRequest } from '@runyard/contract/team/code-hosts';
import type { Vault } from '../../platform/secrets/vault.ts';
import { invalid, notFound, Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { serve, serveOnce } from '../access/serve.ts';
import { readAppKey } from './installation-tokens.ts';
import { createCodeHostCredential, deleteCodeHostCredential, listCodeHostCredentials } from './records.ts';
import { onlyHost } from './url.ts';

const refusals = {
  taken: 'There already is a credential for this host and owner; delete it first.',
  too_many: `A team, and each person in it, can have at most ${maxCodeHostCredentials} credentials of code hosts; delete one first.`,
} as const;

export interface CodeHostRouteDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly settings: Pick<Settings, 'RUNYARD_CODE_HOST_URL'>;
}

/**
 * Returns the host of a new credential. `usual`: the only host of this provider; null if the owner is part of the host name, because then
 * each owner has another host.
 */
function hostOf({ host: named }: CreateCodeHostCredentialRequest, usual: string | null): string | Refusal {
  const host = named?.toLowerCase() ?? usual;
  if (host === null) {
    const message = 'is required here, because RUNYARD_CODE_HOST_URL has the owner in its host name';
    return invalid([{ path: 'host', message }]);
  }
  if (usual === null || host === usual) return host;
  const message = `must be ${usual} or absent: this service clones from there only (RUNYARD_CODE_HOST_URL)`;
  return invalid([{ path: 'host', message }]);
}

/** Routes that list, create and delete credentials of code hosts. */
export const codeHostRoutes = ({ db, vault, settings }: CodeHostRouteDeps): readonly ServedRoute[] => [
  serve(routes.listCodeHostCredentials, async ({ principal }) => ({
    credentials: await listCodeHostCredentials(db, principal),
  })),

  serveOnce(routes.createCodeHostCredential, {
    check: async ({ body }) => {
      const host = hostOf(body, onlyHost(settings.RUNYARD_CODE_HOST_URL));
      if (host instanceof Refusal) return host;
      const key = body.private_key === undefined ? undefined : readAppKey(body.private_key);
      return typeof key === 'string' ? invalid([{ path: 'private_key', message: key }]) : null;
    },
    work: async (tx, { principal, body }) => {
      const host = hostOf(body, onlyHost(settings.RUNYARD_CODE_HOST_URL));
      if (host instanceof Refusal) return host;
      const made = await createCodeHostCredential(tx, vault, principal, { ...body, host });
      return typeof made === 'string' ? refuse('conflict', { detail: refusals[made] }) : made;
    },
  }),

  serve(routes.deleteCodeHostCredential, async ({ principal, params }) => {
    const { credentialId } = params;
    const wasThere =
      isUuid(credentialId) && (await db.transaction((tx) => deleteCodeHostCredential(tx, principal, credentialId)));
    return wasThere ? { success: true as const } : notFound('credential');
  }),
];
