/** Opens the resources that the domains share: database, blobs, keys, models. */
import { randomUUIDv7 } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { Settings } from '@runyard/contract/settings/settings';
import type { Logger } from 'pino';
import { makeBodyBudget } from '../../platform/bodies/body-budget.ts';
import type { Domain } from '../../platform/domain.ts';
import { lockInstallation, readBackedUpAt, readPausedSince } from '../../platform/installation/installation.ts';
import { reading } from '../../platform/metrics/gauges.ts';
import { openConfigSeal } from '../../platform/secrets/config-seal.ts';
import { openSigner } from '../../platform/secrets/signer.ts';
import { openVault, readKeyTexts } from '../../platform/secrets/vault.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import { guardBlobs } from '../../platform/store/blobs/guarded-blobs.ts';
import { blobsAddress, openBlobs } from '../../platform/store/blobs/open-blobs.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { openDatabase } from '../../platform/store/database/open-database.ts';
import { addressOf } from '../../platform/store/database/server-problem.ts';
import { startEmbeddedPostgres } from '../../platform/store/embedded/start.ts';
import { type FreeSpace, watchFreeSpace } from '../../platform/store/free-space/free-space.ts';
import { findNewerMigrations, migrateDatabase } from '../../platform/store/migrations/migrate.ts';
import { makeStoreCheck } from '../../platform/store/migrations/readiness.ts';
import { noExportRuns } from '../../platform/store/transfer/running-exports.ts';
import { readLimits } from '../../runs/conversations/read.ts';
import { defaultTiming, type ExecutionDeps } from '../../runs/executions/deps.ts';
import { openNotices } from '../../runs/executions/notices.ts';
import { limitsOf } from '../../runs/harness-support/events/event-budget.ts';
import { lastRuns } from '../../runs/runs/list/last-runs.ts';
import { bootstrap } from '../../team/access/keys/bootstrap.ts';
import { openKeyDirectory } from '../../team/access/keys/directory.ts';
import { openKeyWatch } from '../../team/access/keys/watch.ts';
import { openSignOn } from '../../team/access/sign-on/sign-on.ts';
import { openCodeHosts } from '../../team/code-hosts/code-hosts.ts';
import { openGithubApi } from '../../team/code-hosts/github-api.ts';
import { openContentPolicy } from '../../team/content-policy/content-policy.ts';
import { type OpenModelsOptions, openModels } from '../../team/models/models.ts';
import { probeEndpoint } from '../../team/models/probe-endpoint.ts';
import { openStoredProviders } from '../../team/models/stored-providers.ts';
import { openSkillLibrary } from '../../team/skills/library.ts';
import { readFolder } from '../../team/skills/read-folder.ts';
import { openSourceReader } from '../../triggers/definitions/source/reader.ts';
import { openWebhookDirectory } from '../../triggers/webhooks/ingest/directory.ts';
import type { ServiceDeps } from '../http/server/deps.ts';
import { checkInstallation } from './check-installation.ts';
import { describePause, type Pause } from './pause.ts';
import { startMetrics, startTraces } from './start-telemetry.ts';
import type { Waiting } from './until-usable.ts';

/** This time is so short that clients get 503 with Retry-After within a second if the database does not answer. */
const databasePatienceMs = 500;

/** A fault in the settings or the machine. `main.ts` prints the message of this error without a stack. */
export class StartProblem extends Error {}

interface PartOptions {
  readonly settings: Settings;
  readonly log: Logger;
  readonly dataDir: string;
  baseUrl(): string;
  webhookBaseUrl(): string;
  readonly undo: Undo;
}

/** The parts of a service that depend on its machine, and the decisions that tests replace. */
interface MachineParts {
  /** The database, with the tables of this version. */
  readonly db: Database;
  /** The blobs, after `checkStored`. */
  readonly stored: BlobStore;
  readonly freeSpace: FreeSpace;
  databaseProblem(): string | null;
  /** Absent: the installation is not paused. */
  readonly pause?: Pause;
  /** Absent: the service does not probe the features of the model endpoint on this machine. */
  readonly probe?: OpenModelsOptions['probe'];
  /** Returns x with 0 ≤ x < 1. */
  readonly random: () => number;
}

/**
 * Starts the embedded database if there is no other, migrates it, and opens everything that the domains need. `undo` gets the steps that
 * close the opened parts. `took` is called after each part, and throws if the start must end. `untilUsable` repeats steps that must wait
 * for the database or the operator.
 */
export async function openParts(
  options: PartOptions & { took(part: string): void; untilUsable: Waiting['untilUsable'] },
): Promise<ServiceDeps> {
  const { settings, log, dataDir, took, undo, untilUsable } = options;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const embedded = settings.RUNYARD_DATABASE_URL
    ? null
    : await startEmbeddedPostgres({ dataDir: path.join(dataDir, 'postgres'), log });
  if (embedded) undo.add(() => embedded.stop());
  took('database');

  const config = {
    address: embedded ? embedded.connection : addressOf(settings.RUNYARD_DATABASE_URL ?? ''),
    maxConnections: settings.RUNYARD_DATABASE_CONNECTIONS,
    connectPatienceMs: databasePatienceMs,
    log,
  };
  const db = await untilUsable(() => openDatabase(config));
  undo.add(() => db.close());
  const freeSpace = watchFreeSpace({
    folder: dataDir,
    ...(embedded && { reserveFile: path.join(dataDir, 'disk-reserve') }),
    log,
  });
  const applied = await untilUsable(() => migrateDatabase(db));
  if (applied.length > 0) log.info({ applied }, 'database migrated');
  const newer = await findNewerMigrations(db);
  if (newer.length > 0)
    log.warn({ migrations: newer }, 'the database was migrated by a newer Runyard: start that version here too');
  const stored = await untilUsable(() => openBlobs(settings, dataDir, log));
  await untilUsable(async () => {
    await checkStored(stored);
    await checkInstallation(db, { dataDir, settings, blobs: stored });
  });
  took('migrations');

  const databaseProblem = () => embedded?.problem() ?? null;
  const pause = { since: await readPausedSince(db) };
  const machine = { db, stored, freeSpace, databaseProblem, pause, probe: probeEndpoint, random: Math.random };
  const deps = await wireParts(options, machine);
  took('wiring');
  return deps;
}

/** Throws `StartProblem` if the blobs cannot be used until a person changes something. */
export async function checkStored(stored: BlobStore): Promise<void> {
  const problem = await stored.problem?.();
  if (problem?.isLasting) throw new StartProblem(problem.text);
}

/** Opens the parts that need a migrated database: keys, models, blobs, directories. `undo` gets the steps that close them. */
export async function wireParts(options: PartOptions, machine: MachineParts): Promise<ServiceDeps> {
  const { settings, log, dataDir, baseUrl, webhookBaseUrl, undo } = options;
  const { db, stored, freeSpace, databaseProblem, pause = { since: null }, probe, random } = machine;
  const { RUNYARD_BOOTSTRAP_KEY: key, RUNYARD_WORKER_KEY: workerKey } = settings;
  const firstKey = await bootstrap(db, { dataDir, key, workerKey });
  if (firstKey.kind === 'worker_key_taken')
    throw new StartProblem('RUNYARD_WORKER_KEY is the text of another key. Give the workers a key of their own.');
  if (firstKey.kind === 'stale_file')
    log.warn(
      'the database no longer has the key in bootstrap-key of the data folder: bin/runyard keys replace-operator-key makes a new one',
    );
  const vault = await openVault(dataDir, settings.RUNYARD_SECRETS_KEY);
  const storedProviders = await openStoredProviders({ db, vault, log }, settings);
  undo.add(async () => storedProviders.close());
  const opened = await openModels(settings, { log, stored: storedProviders.upstreams, ...(probe && { probe }) });
  if (!opened.ok) throw new StartProblem(opened.problems.join('\n'));
  const metrics = await startMetrics({ settings, models: opened.models, db, log, undo });
  await startTraces({ db, log, undo });
  const signOn = await openSignOn(settings.RUNYARD_OIDC_FILE, log);
  if (!signOn.ok) throw new StartProblem(signOn.problems.join('\n'));
  const policyFile = settings.RUNYARD_CONTENT_POLICY_FILE;
  const policy = policyFile
    ? await openContentPolicy(policyFile, { log, key: settings.RUNYARD_CONTENT_POLICY_KEY })
    : undefined;
  if (policy && !policy.ok) throw new StartProblem(policy.problems.join('\n'));
  if (policy) undo.add(() => policy.policy.close());
  const ownSecrets = [
    ...secretsOf(settings),
    ...signOn.signOn.secrets,
    ...(await readKeyTexts(dataDir, settings.RUNYARD_SECRETS_KEY)),
    ...('key' in firstKey ? [firstKey.key] : []),
  ];
  let known: { readonly of: readonly string[]; readonly all: readonly string[] } | undefined;
  /** Returns the same array until a key of a provider is stored, because redactors are made once for each array. */
  const secrets = (): readonly string[] => {
    const of = storedProviders.keys();
    if (known?.of !== of) known = { of, all: [...ownSecrets, ...of] };
    return known.all;
  };
  const deps: ExecutionDeps = {
    db,
    isPaused: () => pause.since !== null,
    log,
    notices: await openNotices(db),
    timing: {
      ...defaultTiming,
      leaseSeconds: settings.RUNYARD_LEASE_SECONDS,
      reconnectGraceSeconds: settings.RUNYARD_RECONNECT_GRACE_SECONDS,
      claimTimeoutSeconds: settings.RUNYARD_CLAIM_TIMEOUT_SECONDS,
    },
    limits: limitsOf(settings),
    get secrets() {
      return secrets();
    },
    vault,
    random,
  };
  const isOnDisk = blobsAddress(settings, dataDir).kind === 'folder';
  const blobs = guardBlobs(stored, {
    freeSpace: isOnDisk ? freeSpace : undefined,
    mayDelete: () => noExportRuns(db),
  });
  const { id } = await db.transaction(lockInstallation);
  const signing = await openSigner(db, vault, id);
  const configSeal = openConfigSeal(db, vault);
  const codeHosts = openCodeHosts({
    db,
    vault,
    template: settings.RUNYARD_CODE_HOST_URL,
    apiUrl: settings.RUNYARD_CODE_HOST_API_URL,
  });
  const keys = await openKeyDirectory(db, log);
  undo.add(async () => keys.close());
  const keyWatch = await openKeyWatch(db, log);
  undo.add(async () => keyWatch.close());
  const webhooks = await openWebhookDirectory(db, vault);
  undo.add(async () => webhooks.close());
  return {
    db,
    blobs,
    settings,
    baseUrl,
    filesUrl: () => settings.RUNYARD_FILES_URL ?? baseUrl(),
    log,
    models: opened.models,
    storedProviders,
    ...(policy ? { contentPolicy: policy.policy } : {}),
    executionDeps: deps,
    signing,
    configSeal,
    vault,
    codeHosts,
    skills: openSkillLibrary({ codeHosts, folder: readFolder(dataDir) }),
    sourceReader: openSourceReader({ codeHosts, folder: readFolder(dataDir) }),
    githubApi: openGithubApi(),
    lastRuns,
    keys,
    keyWatch,
    signOn: signOn.signOn,
    webhooks,
    webhookBaseUrl,
    bodies: makeBodyBudget(),
    conversationReads: makeBodyBudget(readLimits),
    serviceInstanceId: randomUUIDv7(),
    sidecarImage: settings.RUNYARD_SIDECAR_IMAGE,
    freeSpace,
    databaseProblem,
    pause,
    metrics,
  };
}

/**
 * Returns the secrets of the service. The service removes these secrets from texts of agents. Only an agent without a sandbox could read
 * them.
 */
function secretsOf(settings: Settings): string[] {
  return [
    settings.RUNYARD_ANTHROPIC_API_KEY,
    settings.RUNYARD_OPENAI_API_KEY,
    settings.RUNYARD_GOOGLE_API_KEY,
    settings.RUNYARD_MODEL_KEY,
    settings.RUNYARD_CONTENT_POLICY_KEY,
    settings.RUNYARD_BOOTSTRAP_KEY,
    settings.RUNYARD_WORKER_KEY,
    settings.RUNYARD_DATABASE_URL,
    process.env.AWS_SECRET_ACCESS_KEY,
    process.env.AWS_SESSION_TOKEN,
    settings.RUNYARD_METRICS_TOKEN,
  ].filter((secret) => secret !== undefined);
}

/** Steps that undo the start of the service. */
export interface Undo {
  add(step: () => Promise<unknown>): void;
  /** Runs the steps in reverse order. A step that fails is logged, and the others still run. */
  run(): Promise<void>;
}

/** Collects the steps that undo the start. The steps run when the service stops, or when a part of the start fails. */
export function makeUndo(log: Logger): Undo {
  const steps: (() => Promise<unknown>)[] = [];
  return {
    add: (step) => void steps.push(step),
    run: async () => {
      for (const step of steps.splice(0).reverse()) {
        await step().catch((error: unknown) => log.error({ err: error }, 'a part of the service did not stop cleanly'));
      }
    },
  };
}

/** The store as a domain. It is not in `platform/store/`, because that folder may not import domains. */
export function storeDomain(deps: ServiceDeps): Domain {
  const { blobs, freeSpace } = deps;
  let problemOfBlobs: string | null = null;
  const askBlobs = async () => {
    problemOfBlobs = (await blobs.problem?.())?.text ?? null;
  };
  return {
    name: 'store',
    readiness: {
      problem: makeStoreCheck(deps),
      degraded: () => deps.freeSpace.problem() ?? problemOfBlobs ?? describePause(deps.pause),
    },
    gauges: [
      async () => {
        const at = await readBackedUpAt(deps.db);
        return at === null ? [] : [reading('runyard_backup_age_seconds', {}, (Date.now() - Date.parse(at)) / 1000)];
      },
    ],
    loops: async () => [
      { name: 'measuring the free disk space', everyMs: 1_000, work: () => freeSpace.measure() },
      ...(blobs.problem ? [{ name: 'asking for the bucket', everyMs: 10_000, work: askBlobs }] : []),
    ],
  };
}
