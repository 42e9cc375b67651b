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
import type { ContentPolicy } from '../../../team/content-policy/content-policy.ts';
import type { Models } from '../../../team/models/models.ts';
import type { SkillLibrary } from '../../../team/skills/library.ts';
import type { SourceReader } from '../../../triggers/definitions/source/reader.ts';
import type { WebhookDirectory } from '../../../triggers/webhooks/ingest/directory.ts';
import type { AdmitModelRequest } from '../../gateway/models/admission.ts';

/** Dependencies of the domains and their routes. */
export interface ServiceDeps {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly settings: Settings;
  /** Returns the origin under which clients reach the service, without `/api/v1`. The origin is known as soon as the service listens. */
  baseUrl(): string;
  /** Origin from which browsers get files of runs. */
  filesUrl(): string;
  readonly log: Logger;
  readonly models: Models;
  /** Absent: the operator has defined no rules. */
  readonly contentPolicy?: ContentPolicy;
  readonly executionDeps: ExecutionDeps;
  readonly signing: Signer;
  readonly configSeal: ConfigSeal;
  readonly vault: Vault;
  readonly codeHosts: CodeHosts;
  readonly skills: SkillLibrary;
  readonly sourceReader: SourceReader;
  /** Reads the last runs of environments and skills. The folder `team` gets this function as a value, because it may not import `runs`. */
  readonly lastRuns: typeof lastRuns;
  readonly keys: KeyDirectory;
  readonly keyWatch: KeyWatch;
  readonly signOn: SignOn;
  /** Memory budget for the bodies of requests. */
  readonly bodies: BodyBudget;
  /** Memory budget for conversations that are read into memory. */
  readonly conversationReads: BodyBudget;
  /** UUID of this service process. */
  readonly serviceInstanceId: string;
  /** Image with the agent for public workers in docker and kubernetes mode. */
  readonly sidecarImage?: string | undefined;
  /** Decides about each request of a run to a model before it is sent; absent: all are accepted. */
  readonly admitModelRequest?: AdmitModelRequest;
  readonly webhooks: WebhookDirectory;
  /** Returns the origin under which senders reach the ingress. The origin is known as soon as the ingress listens. */
  webhookBaseUrl(): string;
  /** Whether the installation is paused after an import. */
  readonly pause: { readonly since: string | null };
  readonly freeSpace: FreeSpace;
  /** Absent: metrics are off. */
  readonly metrics?: Metrics | undefined;
  /** Returns the reason why the database that this process has started does not run. Null if the database runs, or if another process has
   * started it. */
  databaseProblem(): string | null;
}
