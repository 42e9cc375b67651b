/** Keeps Apps that were read recently in the memory of this process, so that a flood of events does not read the database for each. */
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { type AppRow, openSecrets, readApp } from './apps.ts';

export interface KnownApp {
  readonly app: AppRow;
  readonly webhookSecret: string;
}

/** A deleted App accepts events for this time at most. An event also needs its installation, which is read each time. */
const knownMs = 5_000;
const maxKnown = 1_000;

export type FindApp = (uid: string) => Promise<KnownApp | null>;

export function openAppDirectory(db: Queryable, vault: Vault, now = () => performance.now()): FindApp {
  const known = new Map<string, { readonly at: number; readonly found: Promise<KnownApp | null> }>();
  const read = async (uid: string): Promise<KnownApp | null> => {
    const app = await readApp(db, uid);
    // Without the key of the secret, this process cannot check a signature, so it knows no such App.
    if (!app || !vault.keyIds.includes(app.vault_key_id)) return null;
    return { app, webhookSecret: openSecrets(vault, app).webhookSecret };
  };
  return (uid) => {
    const entry = known.get(uid);
    if (entry && now() - entry.at < knownMs) return entry.found;
    if (known.size >= maxKnown) known.clear();
    const found = read(uid);
    known.set(uid, { at: now(), found });
    found.catch(() => known.delete(uid));
    return found;
  };
}
