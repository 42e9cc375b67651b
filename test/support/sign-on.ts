/** Test support: a service with a real identity provider. The sign-on rules of the service manage one team. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  clientId,
  clientSecret,
  startIdentityProvider,
  type TestIdentityProvider,
} from '../../packages/service/test/identity-provider.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';

/** UID of the team that the rules manage: `platform-leads` are administrators, `platform` members. */
export const ruledTeam = 'RuledRuledRuledRuled22';

export interface SignOnService {
  readonly provider: TestIdentityProvider;
  readonly service: TestService;
  close(): Promise<void>;
}

/**
 * Starts service and identity provider (`Acme ID`). They are different sites, as in a real installation. So the browser sends no
 * cookies with SameSite=Strict when it returns from the provider.
 */
export async function startSignOnService(): Promise<SignOnService> {
  const provider = await startIdentityProvider('localhost');
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-sign-on-'));
  const file = path.join(folder, 'sign-on.json');
  const acme = {
    id: 'acme',
    name: 'Acme ID',
    issuer: provider.issuer,
    client_id: clientId,
    client_secret: clientSecret,
    scopes: ['profile', 'email', 'groups', 'offline_access'],
    parameters: { prompt: 'consent' },
    timeout_seconds: 1,
  };
  const rules = [
    { provider: 'acme', group: 'platform-leads', role: 'admin' },
    { provider: 'acme', group: 'platform', role: 'member' },
  ];
  await writeFile(file, JSON.stringify({ providers: [acme], teams: [{ team: ruledTeam, rules }] }), { mode: 0o600 });
  const service = await startTestService({ env: { RUNYARD_OIDC_FILE: file } });
  provider.register(`${service.baseUrl}/sign-in`);
  await service.deps.db.query(`INSERT INTO teams (id, uid, name) VALUES (gen_random_uuid(), $1, 'Platform')`, [
    ruledTeam,
  ]);
  return {
    provider,
    service,
    close: async () => {
      await service.close();
      await provider.close();
      await rm(folder, { recursive: true });
    },
  };
}
