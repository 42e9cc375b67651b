/** The whole service in one process: database, engine, HTTP, worker connections, background loops. */
import { randomUUIDv7 } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { thisProcess } from '@runyard/contract/process-identity';
import type { Settings } from '@runyard/contract/settings';
import type { Logger } from 'pino';
import { bootstrap } from './access/keys/bootstrap.ts';
import { defaultTiming, type Engine } from './executions/engine.ts';
import {
  beatServiceInstance,
  forgetServiceInstance,
  heartbeatMs,
  repeat,
  serviceSilentSeconds,
} from './executions/lease/heartbeat.ts';
import { openNotices } from './executions/notices.ts';
import { expireWaiting, reconcile } from './executions/reconcile/reconcile.ts';
import { composeTranscripts } from './executions/transcript/compose-transcripts.ts';
import { limitsOf } from './harness-support/events/event-budget.ts';
import { buildApp } from './http/app.ts';
import { loadSigner } from './http/server/signer.ts';
import { openModels } from './models/models.ts';
import { systemNames } from './names/resolver.ts';
import { sweepWhenDue } from './retention/sweep.ts';
import { indexRunWords, runsPerTurn } from './runs/list/search-index.ts';
import { openVault } from './secrets/vault.ts';
import { openFolderBlobs } from './store/blobs/folder-blobs.ts';
import { openDatabase } from './store/database/database.ts';
import { startEmbeddedPostgres } from './store/embedded/start.ts';
import { watchFreeSpace } from './store/free-space/free-space.ts';
import { migrateDatabase } from './store/migrations/migrate.ts';
import { makeAddressRules } from './subscriptions/addresses.ts';
import { openDeliverer } from './subscriptions/deliverer.ts';
import { countUnreadableSecrets } from './subscriptions/subscriptions.ts';
import { openHub } from './workers/hub.ts';
import { forgetUnusedInstances } from './workers/instances.ts';
import { dropConnectionsOfDeadServices } from './workers/lost-connections.ts';
import { serveWorkerSockets } from './workers/socket.ts';

/** A mistake of whoever starts the service: told in a sentence, without a stack. */
export class StartProblem extends Error {}

export interface RunningService {
  /** Origin under which clients reach it. */
  readonly baseUrl: string;
  /** Milliseconds that each part of the start took. */
  readonly startedIn: Readonly<Record<string, number>>;
  stop(): Promise<void>;
}

/** Starts the service; resolves when it answers requests. Where `signal` aborts, the start ends with its current part, leaves nothing and throws the reason. */
export async function startService(settings: Settings, log: Logger, signal: AbortSignal): Promise<RunningService> {
  const dataDir = path.resolve(settings.RUNYARD_DATA_DIR);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const startedIn: Record<string, number> = {};
  let mark = performance.now();
  const took = (part: string) => {
    startedIn[part] = Math.round(performance.now() - mark);
    mark = performance.now();
    signal.throwIfAborted();
  };
  // Undone in reverse order, at the end or where the start fails half-way.
  const undo: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) {
      await step().catch((error: unknown) => log.error({ err: error }, 'a part of the service did not stop cleanly'));
    }
  };
  try {
    const embedded = settings.RUNYARD_DATABASE_URL
      ? null
      : await startEmbeddedPostgres({ dataDir: path.join(dataDir, 'postgres'), log });
    if (embedded) undo.push(() => embedded.stop());
    took('database');

    const db = await openDatabase({
      address: embedded ? embedded.connection : { connectionString: settings.RUNYARD_DATABASE_URL ?? '' },
      maxConnections: settings.RUNYARD_DATABASE_CONNECTIONS,
      log,
    });
    undo.push(() => db.close());
    const freeSpace = watchFreeSpace({
      folder: dataDir,
      ...(embedded && { reserveFile: path.join(dataDir, 'disk-reserve') }),
      log,
    });
    const applied = await migrateDatabase(db);
    if (applied.length > 0) log.info({ applied }, 'database migrated');
    took('migrations');

    const keys = await bootstrap(db, { dataDir, key: settings.RUNYARD_BOOTSTRAP_KEY });
    const opened = await openModels(settings, { log });
    if (!opened.ok) throw new StartProblem(opened.problems.join('\n'));
    const { models } = opened;
    const engine: Engine = {
      db,
      log,
      notices: await openNotices(db),
      timing: {
        ...defaultTiming,
        leaseSeconds: settings.RUNYARD_LEASE_SECONDS,
        reconnectGraceSeconds: settings.RUNYARD_RECONNECT_GRACE_SECONDS,
        claimTimeoutSeconds: settings.RUNYARD_CLAIM_TIMEOUT_SECONDS,
      },
      limits: limitsOf(settings),
      secrets: [...secretsOf(settings), ...('key' in keys ? [keys.key] : [])],
      random: Math.random,
    };
    const blobs = await openFolderBlobs(path.join(dataDir, 'blobs'));
    const signing = await loadSigner(db);
    const vault = await openVault(dataDir, settings.RUNYARD_SECRETS_KEY);
    const unreadable = await countUnreadableSecrets(db, vault);
    if (unreadable > 0) {
      log.warn(
        { subscriptions: unreadable },
        'secrets of event subscriptions were sealed with another key: set RUNYARD_SECRETS_KEY, or rotate them',
      );
    }
    took('wiring');

    let baseUrl = settings.RUNYARD_BASE_URL ?? '';
    const { app, authenticateWorker, keyWatch } = await buildApp({
      db,
      blobs,
      settings,
      baseUrl: () => baseUrl,
      log,
      models,
      engine,
      signing,
      vault,
      freeSpace,
      databaseProblem: () => embedded?.problem() ?? null,
    });
    undo.push(() => app.close());

    const instanceId = randomUUIDv7();
    const beat = async () => {
      const spared = await beatServiceInstance(engine, instanceId);
      if (spared > 0) log.info({ executions: spared }, 'leases extended: no service process lived to renew them');
    };
    await beat();
    undo.push(() => forgetServiceInstance(db, instanceId));
    const hub = openHub(engine, { serviceInstanceId: instanceId });
    undo.push(() => hub.close());
    const closeSockets = serveWorkerSockets(app.server, { hub, log, authenticate: authenticateWorker, keyWatch });
    undo.push(async () => closeSockets());

    const address = await app
      .listen({ host: settings.RUNYARD_HOST, port: settings.RUNYARD_PORT })
      .catch((error: NodeJS.ErrnoException) => {
        throw error.code === 'EADDRINUSE' ? new StartProblem(portInUse(settings)) : error;
      });
    baseUrl ||= address;
    took('listen');

    // Only now: payloads hold the address.
    const deliverer = await openDeliverer({
      db,
      log,
      vault,
      rules: makeAddressRules(settings.RUNYARD_ALLOW_PRIVATE_NETWORKS),
      resolve: systemNames.resolve,
      baseUrl: () => baseUrl,
      random: Math.random,
    });
    undo.push(() => deliverer.close());

    const ending = new AbortController();
    const loops = [
      repeat(engine, 'measuring the free disk space', 1_000, () => freeSpace.measure()),
      repeat(engine, 'the heartbeat of the service', heartbeatMs(engine.timing), beat),
      repeat(engine, 'assigning work', 1_000, () => hub.dispatch()),
      repeat(engine, 'sending stop orders', 1_000, () => hub.sendStopOrders()),
      repeat(engine, 'the reconciler', 1_000, () => reconcile(engine)),
      repeat(engine, 'the time limit of the queue', 60_000, () => expireWaiting(engine)),
      repeat(engine, 'composing transcripts', 2_000, () => composeTranscripts(db, blobs)),
      repeat(engine, 'delivering events', 1_000, () => deliverer.deliver()),
      repeat(engine, 'the words of new runs', 1_000, () => indexRunWords(db, runsPerTurn)),
      repeat(engine, 'the sweep of dead services', 5_000, () =>
        dropConnectionsOfDeadServices(engine, instanceId, serviceSilentSeconds),
      ),
      repeat(engine, 'the sweep of worker instances', 60_000, () => forgetUnusedInstances(db)),
      repeat(engine, 'the nightly retention', 60_000, () =>
        sweepWhenDue({ db, blobs, log, settings, signal: ending.signal }),
      ),
    ];
    undo.push(async () => {
      ending.abort();
      await Promise.all(loops.map((stopLoop) => stopLoop()));
    });

    const file = path.join(dataDir, 'service.json');
    await writeFile(
      `${file}.${process.pid}`,
      JSON.stringify({
        ...thisProcess(),
        base_url: baseUrl,
        started_at: new Date().toISOString(),
      }),
    );
    await rename(`${file}.${process.pid}`, file);
    undo.push(() => rm(file, { force: true }));
    log.info({ base_url: baseUrl, started_in_ms: startedIn }, 'service ready');
    return { baseUrl, startedIn, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What must never be found in anything that an agent wrote: a sandbox has none of it, unless it is no sandbox. */
function secretsOf(settings: Settings): string[] {
  return [
    settings.RUNYARD_ANTHROPIC_API_KEY,
    settings.RUNYARD_OPENAI_API_KEY,
    settings.RUNYARD_GOOGLE_API_KEY,
    settings.RUNYARD_MODEL_KEY,
    settings.RUNYARD_BOOTSTRAP_KEY,
    settings.RUNYARD_SECRETS_KEY,
    settings.RUNYARD_DATABASE_URL,
  ].filter((secret) => secret !== undefined);
}

function portInUse(settings: Settings): string {
  return `RUNYARD_PORT: port ${settings.RUNYARD_PORT} on ${settings.RUNYARD_HOST} is in use by another program; stop that or set another port.`;
}
