/**
 * The requests that a worker sends to a cluster. Only this backend imports this file, because loading the client library takes half a
 * second and 90 MB.
 */
import {
  ApiException,
  AuthorizationV1Api,
  BatchV1Api,
  type Configuration,
  CoreV1Api,
  createConfiguration,
  KubeConfig,
  NetworkingV1Api,
  type RequestContext,
  ServerConfiguration,
  type V1Job,
  type V1NetworkPolicy,
  type V1Pod,
  VersionApi,
} from '@kubernetes/client-node';

export interface ClusterAddress {
  /** Path of the kubeconfig file. If it is absent, the default kubeconfig or the service account of this pod is used. */
  readonly config?: string | undefined;
  readonly namespace: string;
}

/** A namespace of a cluster. Each call rejects with a `ClusterError`. */
export interface Cluster {
  readonly namespace: string;
  version(): Promise<string>;
  /** Returns the rights that this worker needs and does not have. */
  missingRights(): Promise<string[]>;
  /** Creates a Job. `dryRun`: the cluster only checks the Job and does not create it. */
  createJob(job: V1Job, dryRun?: boolean): Promise<V1Job>;
  /** Adds the annotations to a suspended Job and ends the suspension, so that its pod starts. */
  release(name: string, uid: string, annotations: Readonly<Record<string, string>>): Promise<void>;
  listJobs(selector: string): Promise<V1Job[]>;
  listPods(selector: string): Promise<V1Pod[]>;
  /**
   * Deletes a Job with its pods and its Secret. Each pod may use the grace period of its specification to end, unless `deletePod` has
   * set a shorter one. The Job disappears only after its pods. Does nothing if the Job does not exist.
   */
  deleteJob(name: string, uid: string | undefined): Promise<void>;
  /** Deletes a pod. Its processes have `graceSeconds` to end. */
  deletePod(name: string, uid: string | undefined, graceSeconds: number): Promise<void>;
  /** Creates a Secret that belongs to a Job. The cluster deletes the Secret together with the Job. */
  createSecret(name: string, job: V1Job, content: Readonly<Record<string, string>>): Promise<void>;
  deleteSecret(name: string): Promise<void>;
  /** Returns the last lines of a container. `timestamps`: each line begins with its time and a space. */
  logOf(pod: string, container: string, timestamps?: boolean): Promise<string>;
  /** Makes or replaces a network policy. */
  putPolicy(policy: V1NetworkPolicy): Promise<void>;
  deletePolicy(name: string): Promise<void>;
}

/** The cluster refused a request, or did not answer. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
  /** Status of the answer. Undefined if there was no answer. */
  readonly status: number | undefined;

  constructor(message: string, status: number | undefined, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

const longestAnswerMs = 30_000;
/** Connections are reused for this time. Then new connections are opened, because the certificates in files may have changed. */
const connectionMs = 10 * 60_000;
const logLines = 200;
const logBytes = 1024 * 1024;

/** Rights that the worker needs in its namespace: API group, resource, subresource, verbs. docs/isolation.md lists them as a Role. */
const rights = [
  ['batch', 'jobs', '', ['create', 'get', 'list', 'patch', 'delete']],
  ['', 'pods', '', ['list', 'delete']],
  ['', 'pods', 'log', ['get']],
  ['', 'secrets', '', ['create', 'delete']],
  ['networking.k8s.io', 'networkpolicies', '', ['create', 'get', 'update', 'delete']],
] as const;

/** Opens a cluster. Throws if no configuration is found. */
export function openCluster({ config: file, namespace }: ClusterAddress): Cluster {
  const config = new KubeConfig();
  if (file === undefined) config.loadFromDefault();
  else config.loadFromFile(file);
  const server = config.getCurrentCluster()?.server;
  if (server === undefined) throw new ClusterError('the kubeconfig names no cluster', undefined);
  const settings = persistent(config, server);
  const batch = new BatchV1Api(settings);
  const core = new CoreV1Api(settings);
  const networking = new NetworkingV1Api(settings);
  const authorization = new AuthorizationV1Api(settings);
  const versions = new VersionApi(settings);

  return {
    namespace,
    version: async () => (await ask(versions.getCode())).gitVersion,
    async missingRights() {
      const missing: string[] = [];
      for (const [group, resource, subresource, verbs] of rights) {
        for (const verb of verbs) {
          const resourceAttributes = { namespace, group, resource, subresource, verb };
          const body = { spec: { resourceAttributes } };
          const { status } = await ask(authorization.createSelfSubjectAccessReview({ body }));
          if (status?.allowed !== true)
            missing.push(`${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`);
        }
      }
      return missing;
    },
    createJob: (body, dryRun = false) =>
      ask(
        batch.createNamespacedJob({ namespace, body, fieldValidation: 'Strict', ...(dryRun ? { dryRun: 'All' } : {}) }),
      ),
    async release(name, uid, annotations) {
      // The first operation tests the id of the Job. So if someone else has replaced the Job by another Job with the same name, the other
      // Job is not changed.
      const body = [
        { op: 'test', path: '/metadata/uid', value: uid },
        ...Object.entries(annotations).map(([key, value]) => ({
          op: 'add',
          path: `/metadata/annotations/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`,
          value,
        })),
        { op: 'replace', path: '/spec/suspend', value: false },
      ];
      await ask(batch.patchNamespacedJob({ name, namespace, body }));
    },
    listJobs: async (labelSelector) => (await ask(batch.listNamespacedJob({ namespace, labelSelector }))).items,
    listPods: async (labelSelector) => (await ask(core.listNamespacedPod({ namespace, labelSelector }))).items,
    async deleteJob(name, uid) {
      const body = { propagationPolicy: 'Foreground', ...precondition(uid) };
      await unlessGone(ask(batch.deleteNamespacedJob({ name, namespace, body })));
    },
    async deletePod(name, uid, gracePeriodSeconds) {
      await unlessGone(
        ask(core.deleteNamespacedPod({ name, namespace, body: { gracePeriodSeconds, ...precondition(uid) } })),
      );
    },
    async createSecret(name, job, stringData) {
      const owner = {
        apiVersion: 'batch/v1',
        kind: 'Job',
        name: job.metadata?.name ?? '',
        uid: job.metadata?.uid ?? '',
      };
      const body = {
        metadata: { name, namespace, labels: job.metadata?.labels ?? {}, ownerReferences: [owner] },
        immutable: true,
        type: 'Opaque',
        stringData: { ...stringData },
      };
      await ask(core.createNamespacedSecret({ namespace, body }));
    },
    async deleteSecret(name) {
      await unlessGone(ask(core.deleteNamespacedSecret({ name, namespace })));
    },
    logOf: async (name, container, timestamps = false) => {
      const request = { name, namespace, container, timestamps, tailLines: logLines, limitBytes: logBytes };
      return (await ask(core.readNamespacedPodLog(request))) ?? '';
    },
    async putPolicy(body) {
      const name = body.metadata?.name ?? '';
      const current = await unlessGone(ask(networking.readNamespacedNetworkPolicy({ name, namespace })));
      if (current === undefined) await ask(networking.createNamespacedNetworkPolicy({ namespace, body }));
      else await ask(networking.replaceNamespacedNetworkPolicy({ name, namespace, body }));
    },
    async deletePolicy(name) {
      await unlessGone(ask(networking.deleteNamespacedNetworkPolicy({ name, namespace })));
    },
  };
}

const precondition = (uid: string | undefined) => (uid === undefined ? {} : { preconditions: { uid } });

/**
 * Returns settings with which the library reuses connections. By default, the library creates a new dispatcher for each request, and
 * each dispatcher opens a new connection.
 */
function persistent(config: KubeConfig, server: string): Configuration {
  let dispatcher: ReturnType<RequestContext['getDispatcher']>;
  let since = 0;
  const authentication = {
    getName: () => config.getName(),
    async applySecurityAuthentication(context: RequestContext) {
      await config.applySecurityAuthentication(context);
      if (dispatcher !== undefined && performance.now() - since < connectionMs)
        return context.setDispatcher(dispatcher);
      // Closes the old connections when their requests have ended. Does not wait for this.
      void dispatcher?.close().catch(() => {});
      dispatcher = context.getDispatcher();
      since = performance.now();
    },
  };
  return createConfiguration({
    baseServer: new ServerConfiguration(server, {}),
    authMethods: { default: authentication },
  });
}

/**
 * Waits for an answer. Rejects with a `ClusterError` that has a short message. The errors of the library are not used, because they
 * contain whole answers with headers.
 */
async function ask<T>(request: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new ClusterError(`the cluster did not answer within ${longestAnswerMs / 1000} s`, undefined)),
    longestAnswerMs,
  );
  try {
    return await Promise.race([request, late]);
  } catch (error) {
    if (error instanceof ClusterError) throw error;
    if (error instanceof ApiException) throw new ClusterError(messageOf(error), error.code, { cause: error.code });
    const { message, cause } = error as Error;
    throw new ClusterError(
      `the cluster cannot be reached: ${cause instanceof Error ? cause.message : message}`,
      undefined,
    );
  } finally {
    clearTimeout(timer);
  }
}

function messageOf({ code, body }: ApiException<unknown>): string {
  try {
    const answer: unknown = typeof body === 'string' ? JSON.parse(body) : body;
    const { message } = answer as { message?: unknown };
    if (typeof message === 'string') return `the cluster refused it (${code}): ${message}`;
  } catch {
    // The answer is not from the cluster itself, but from a proxy.
  }
  return `the cluster answered with status ${code}`;
}

/** Waits for an answer. Resolves with undefined if the object does not exist or if another object has the name of this object. */
async function unlessGone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ClusterError && (error.status === 404 || error.status === 409)) return undefined;
    throw error;
  }
}
