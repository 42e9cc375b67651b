import type { Settings } from '@runyard/contract/settings/settings';
import type { Logger } from 'pino';
import type { BodyBudget } from '../../../platform/bodies/body-budget.ts';
import type { Metrics } from '../../../platform/metrics/open-metrics.ts';
import type { ConfigSeal } from '../../../platform/secrets/config-seal.ts';
import type { Signer } from '../../../platform/secrets/signer.ts';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import type { FreeSpace } from '../../../platform/store/free-space/free-space.ts';
import type { ExecutionDeps } from '../../../runs/executions/deps.ts';
import type { lastRuns } from '../../../runs/runs/list/last-runs.ts';
import type { KeyDirectory } from '../../../team/access/keys/directory.ts';
import type { KeyWatch } from '../../../team/access/keys/watch.ts';
import type { SignOn } from '../../../team/access/sign-on/sign-on.ts';
import type { CodeHosts } from '../../../team/code-hosts/code-hosts.ts';
import type { GithubApi } from '../../../team/code-hosts/github-api.ts';
import type { ContentPolicy } from '../../../team/content-policy/content-policy.ts';
import type { Models } from '../../../team/models/models.ts';
import type { StoredProviders } from '../../../team/models/stored-providers.ts';
import type { SkillLibrary } from '../../../team/skills/library.ts';
import type { SourceReader } from '../../../triggers/definitions/source/reader.ts';
import type { WebhookDirectory } from '../../../triggers/webhooks/ingest/directory.ts';
import type { AdmitModelRequest } from '../../gateway/models/admission.ts';

/** Where the service stores its data. */
export interface StoreParts {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly freeSpace: FreeSpace;
  /** Whether the installation is paused after an import. */
  readonly pause: { readonly since: string | null };
  /** Returns the reason why the database that this process has started does not run. Null if the database runs, or if another process has
   * started it. */
  databaseProblem(): string | null;
}

/** The keys, sessions and signatures with which the service recognises callers, and the encryption of stored secrets. */
export interface AccessParts {
  readonly keys: KeyDirectory;
  readonly keyWatch: KeyWatch;
  readonly signOn: SignOn;
  readonly signing: Signer;
  readonly configSeal: ConfigSeal;
  readonly vault: Vault;
}

/** The parts with which runs are created and executed. */
export interface RunParts {
  readonly executionDeps: ExecutionDeps;
  readonly models: Models;
  readonly storedProviders: StoredProviders;
  /** Decides about each request of a run to a model before it is sent; absent: all are accepted. */
  readonly admitModelRequest?: AdmitModelRequest;
  /** Absent: the operator has defined no rules. */
  readonly contentPolicy?: ContentPolicy;
  readonly codeHosts: CodeHosts;
  readonly githubApi: GithubApi;
  readonly skills: SkillLibrary;
  readonly sourceReader: SourceReader;
  readonly webhooks: WebhookDirectory;
  /** Reads the last runs of environments and skills. The folder `team` gets this function as a value, because it may not import `runs`. */
  readonly lastRuns: typeof lastRuns;
  /** Image with the agent for public workers in docker and kubernetes mode. */
  readonly sidecarImage?: string | undefined;
}

/** The addresses of the service. They are known as soon as the service listens. */
export interface Addresses {
  /** Returns the origin under which clients reach the service, without `/api/v1`. */
  baseUrl(): string;
  /** Origin from which browsers get files of runs. */
  filesUrl(): string;
  /** Returns the origin under which senders reach the ingress. */
  webhookBaseUrl(): string;
}

/** Dependencies of the domains and their routes. */
export interface ServiceDeps extends StoreParts, AccessParts, RunParts, Addresses {
  readonly settings: Settings;
  readonly log: Logger;
  /** UUID of this service process. */
  readonly serviceInstanceId: string;
  /** Memory budget for the bodies of requests. */
  readonly bodies: BodyBudget;
  /** Memory budget for conversations that are read into memory. */
  readonly conversationReads: BodyBudget;
  /** Absent: metrics are off. */
  readonly metrics?: Metrics | undefined;
}
