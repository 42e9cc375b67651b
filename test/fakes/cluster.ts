/**
 * A fake API server of Kubernetes in memory, with a small Job controller and a scheduler. The server knows only the kinds of objects
 * that the kubernetes backend of the worker uses. It does not validate objects and has no watches. Its answers have the form of
 * Kubernetes 1.34.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request and its answer. */
export interface Exchange {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly body?: unknown;
  readonly status: number;
  /** Body of the answer: JSON, or text if it is the log of a pod. */
  readonly answer: unknown;
}

/** Reads the body of a request, as JSON. */
export async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  return text === '' ? undefined : JSON.parse(text);
}

interface Meta {
  name: string;
  uid: string;
  labels?: Record<string, string>;
  ownerReferences?: { uid: string; controller?: boolean; kind: string; name: string; apiVersion: string }[];
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  [member: string]: unknown;
}
// biome-ignore lint/suspicious/noExplicitAny: the server passes on members that it does not know.
type Open = Record<string, any>;
interface Stored {
  metadata: Meta;
  spec?: Open;
  status?: Open;
  [member: string]: unknown;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const kinds: Readonly<Record<string, string>> = {
  jobs: 'Job',
  pods: 'Pod',
  secrets: 'Secret',
  nodes: 'Node',
  networkpolicies: 'NetworkPolicy',
};
const lists = /^\/api(?:s\/[^/]+)?\/v1(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?(?:\/([a-z]+))?$/;
const looksMs = 50;

const problem = (status: number, message: string): Answer => ({
  status,
  body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code: status },
});
const mebibytes = (amount = '0'): number => Number.parseInt(amount, 10) * (amount.endsWith('Gi') ? 1024 : 1);

export interface MemoryCluster extends AsyncDisposable {
  readonly server: string;
  /** Returns the requests that were sent with this token, and their answers. */
  exchangesOf(token: string): Exchange[];
  /** Stores an object without an HTTP request, as if another user of the namespace had created it. */
  put(resource: string, object: object): void;
}

/** Starts the server. All users get the same answers. */
export async function startMemoryCluster(): Promise<MemoryCluster> {
  const stores = new Map(Object.keys(kinds).map((resource) => [resource, new Map<string, Stored>()]));
  const exchanges = new Map<string, Exchange[]>();
  const exchangesOf = (token: string): Exchange[] => {
    const known = exchanges.get(token) ?? [];
    exchanges.set(token, known);
    return known;
  };
  const of = (resource: string) => stores.get(resource) ?? new Map<string, Stored>();

  const make = (resource: string, object: Open): Stored => {
    const made = {
      ...object,
      metadata: { ...object.metadata, uid: randomUUID(), creationTimestamp: new Date().toISOString() },
    } as Stored;
    const { stringData } = object;
    if (stringData !== undefined) {
      made.data = Object.fromEntries(
        Object.entries(stringData).map(([name, text]) => [name, Buffer.from(String(text)).toString('base64')]),
      );
      delete made.stringData;
    }
    made.status ??= {};
    of(resource).set(made.metadata.name, made);
    return made;
  };

  /**
   * Does the work of the Kubernetes controllers: creates pods for Jobs, assigns them to nodes, updates the status of ended Jobs, and
   * removes objects whose owner no longer exists.
   */
  const control = (): void => {
    for (const job of of('jobs').values()) {
      const pods = [...of('pods').values()].filter(
        ({ metadata }) => metadata.ownerReferences?.[0]?.uid === job.metadata.uid,
      );
      if (job.metadata.deletionTimestamp !== undefined) {
        for (const pod of pods) pod.metadata.deletionTimestamp ??= new Date().toISOString();
        if (pods.length === 0) of('jobs').delete(job.metadata.name);
        continue;
      }
      const isOver = job.status?.conditions !== undefined;
      const phase = pods[0]?.status?.phase;
      if (phase === 'Succeeded' || phase === 'Failed') {
        job.status = {
          conditions: [
            { type: phase === 'Succeeded' ? 'Complete' : 'Failed', status: 'True', reason: 'BackoffLimitExceeded' },
          ],
        };
      } else if (pods.length === 0 && job.status?.active === 1) {
        job.status = { conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded' }] };
      } else if (pods.length === 0 && job.spec?.suspend === false && !isOver) {
        const owner = {
          apiVersion: 'batch/v1',
          kind: 'Job',
          name: job.metadata.name,
          uid: job.metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        };
        const { metadata, spec } = job.spec.template;
        make('pods', {
          metadata: { ...metadata, name: `${job.metadata.name}-abcde`, namespace: 'runyard', ownerReferences: [owner] },
          spec: { ...spec },
          status: { phase: 'Pending' },
        });
        job.status = { active: 1 };
      }
    }
    for (const pod of of('pods').values()) schedule(pod);
    for (const [name, { metadata }] of of('secrets')) {
      const owner = metadata.ownerReferences?.[0];
      if (owner !== undefined && of('jobs').get(owner.name)?.metadata.uid !== owner.uid) of('secrets').delete(name);
    }
  };

  const schedule = (pod: Stored): void => {
    if (pod.spec?.nodeName !== undefined || pod.spec === undefined) return;
    const [node] = of('nodes').values();
    const wanted = mebibytes(pod.spec.containers[0].resources?.requests?.memory);
    if (node !== undefined && wanted <= mebibytes(node.status?.allocatable?.memory)) {
      pod.spec.nodeName = node.metadata.name;
      return;
    }
    if (pod.metadata.deletionTimestamp !== undefined) of('pods').delete(pod.metadata.name);
    const message =
      '0/1 nodes are available: 1 Insufficient memory. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.';
    pod.status = {
      ...pod.status,
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
    };
  };

  const patch = (object: Stored, operations: { op: string; path: string; value: unknown }[]): Answer => {
    for (const { op, path, value } of operations) {
      const names = path
        .slice(1)
        .split('/')
        .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
      const last = names.pop() ?? '';
      const at = names.reduce<Open>((part, name) => {
        part[name] ??= {};
        return part[name];
      }, object as Open);
      if (op === 'test' && at[last] !== value) return problem(422, `testing value ${path} failed`);
      if (op !== 'test') at[last] = value;
    }
    return { status: 200, body: object };
  };

  const remove = (resource: string, name: string, body: Open = {}): Answer => {
    const object = of(resource).get(name);
    if (object === undefined) return problem(404, `${resource} "${name}" not found`);
    const uid = body.preconditions?.uid;
    if (uid !== undefined && uid !== object.metadata.uid)
      return problem(409, `Precondition failed: UID in precondition: ${uid}`);
    const lingers =
      resource === 'jobs' ||
      (resource === 'pods' && object.spec?.nodeName !== undefined && body.gracePeriodSeconds !== 0);
    if (lingers) {
      object.metadata.deletionTimestamp ??= new Date().toISOString();
      object.metadata.deletionGracePeriodSeconds = body.gracePeriodSeconds ?? 30;
    } else of(resource).delete(name);
    return { status: 200, body: object };
  };

  const list = (resource: string, query: URLSearchParams): Answer => {
    const wanted = (query.get('labelSelector') ?? '')
      .split(',')
      .filter(Boolean)
      .map((pair) => pair.split('='));
    const node = query.get('fieldSelector')?.split('=')[1];
    const items = [...of(resource).values()].filter(
      ({ metadata, spec }) =>
        wanted.every(([name = '', value]) => metadata.labels?.[name] === value) &&
        (node === undefined || spec?.nodeName === node),
    );
    return { status: 200, body: { kind: `${kinds[resource]}List`, apiVersion: 'v1', metadata: {}, items } };
  };

  const logOf = async (pod: Stored, container: string): Promise<Answer> => {
    const [node] = of('nodes').values();
    const port = node?.status?.daemonEndpoints?.kubeletEndpoint?.Port;
    const answer = await fetch(`http://127.0.0.1:${port}/containerLogs/runyard/${pod.metadata.name}/${container}`);
    return { status: answer.status, body: await answer.text() };
  };

  const answerTo = async (method: string, url: URL, body: Open | undefined): Promise<Answer> => {
    if (/^\/version\/?$/.test(url.pathname)) return { status: 200, body: { gitVersion: 'v1.34.2' } };
    if (url.pathname.endsWith('/selfsubjectaccessreviews'))
      return { status: 201, body: { ...body, status: { allowed: true } } };
    const [, , resource = '', name, subresource] = lists.exec(url.pathname) ?? [];
    if (!stores.has(resource)) return problem(404, `the server could not find ${url.pathname}`);
    if (method === 'POST') {
      if (of(resource).has(body?.metadata.name))
        return problem(409, `${resource} "${body?.metadata.name}" already exists`);
      return { status: 201, body: url.searchParams.has('dryRun') ? body : make(resource, body ?? {}) };
    }
    if (name === undefined) return list(resource, url.searchParams);
    if (method === 'DELETE') return remove(resource, name, body);
    const object = of(resource).get(name);
    if (object === undefined) return problem(404, `${resource} "${name}" not found`);
    if (method === 'PATCH') return patch(object, body as never);
    if (method === 'PUT') return { status: 200, body: Object.assign(object, { spec: body?.spec }) };
    return subresource === 'log'
      ? logOf(object, url.searchParams.get('container') ?? '')
      : { status: 200, body: object };
  };

  const server = createServer(async (request, response) => {
    const { method = '', url: path = '' } = request;
    const body = await bodyOf(request);
    const answered = await answerTo(method, new URL(path, 'http://cluster'), body as Open | undefined).catch(
      (error: Error) => problem(500, error.message),
    );
    // Return a copy, because the fake changes its objects later.
    const answer = typeof answered.body === 'string' ? answered.body : JSON.parse(JSON.stringify(answered.body));
    const token = request.headers.authorization?.slice('Bearer '.length) ?? '';
    exchangesOf(token).push({ method, path, body, status: answered.status, answer });
    response.writeHead(answered.status, {
      'content-type': typeof answer === 'string' ? 'text/plain' : 'application/json',
    });
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const timer = setInterval(control, looksMs);
  return {
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchangesOf,
    put: (resource, object) => void make(resource, object),
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      server.closeAllConnections();
      server.close();
    },
  };
}
