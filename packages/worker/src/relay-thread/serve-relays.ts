/** The thread that runs the relays and proxies of the sandboxes of a process (`relay-thread.ts`). */
import type { MessagePort } from 'node:worker_threads';
import { cacheAnswers } from '../cache/answer.ts';
import { type ExecutionEgress, makeEgress } from '../egress/egress.ts';
import { memoryAnswers, type SandboxMemory } from '../relay/memory-answers.ts';
import { openRelay, openUpstream, type Upstream } from '../relay/relay.ts';
import { type ServiceState, serviceAnswers } from '../relay/service-answers.ts';
import type { Relay } from '../relay/socket-server.ts';
import type { ProxyOrder, RelayOrder, SandboxQuestion, ThreadMessage, ThreadRequest } from './relay-thread.ts';
import { remoteCache } from './remote-cache.ts';

/** An answer about memory is valid for this time, so that a sandbox that asks all the time does not occupy the process. */
const memoryMs = 100;

interface OpenRelay extends Relay {
  token: string;
}

/** Obeys the requests that arrive at the port. */
export function serveRelays(port: MessagePort): void {
  const upstreams = new Map<string, Upstream>();
  const relays = new Map<number, OpenRelay>();
  const proxies = new Map<number, { readonly egress: ExecutionEgress; readonly proxy: Relay }>();
  const asked = new Map<number, (answer: SandboxMemory | ServiceState | undefined) => void>();
  let last = 0;
  const post = (message: ThreadMessage): void => port.postMessage(message);

  /** All sandboxes share the connections to a service. */
  const upstreamTo = (serviceRoot: string): Upstream => {
    const upstream = upstreams.get(serviceRoot) ?? openUpstream(serviceRoot);
    upstreams.set(serviceRoot, upstream);
    return upstream;
  };

  /** Asks the process about a sandbox. Resolves with undefined if the process has no answer. */
  const ask = <T extends SandboxMemory | ServiceState>(id: number, question: SandboxQuestion) => {
    last += 1;
    const number = last;
    const answer = new Promise<T | undefined>((resolve) => {
      asked.set(number, (given) => resolve(given as T | undefined));
    });
    post({ type: 'question', id, number, question });
    return answer;
  };

  /** Returns the function that asks the process for the memory of a sandbox. */
  const memoryOf = (id: number): (() => Promise<SandboxMemory>) => {
    let known: { readonly at: number; readonly memory: Promise<SandboxMemory> } | undefined;
    return () => {
      if (known !== undefined && performance.now() - known.at < memoryMs) return known.memory;
      const memory = ask<SandboxMemory>(id, { about: 'memory' }).then((answer) => {
        if (answer === undefined) throw new Error('it cannot be read');
        return answer;
      });
      known = { at: performance.now(), memory };
      return memory;
    };
  };

  const open = async (
    id: number,
    { socketPath, uid, serviceRoot, cacheSocket, sandbox, hasServices }: RelayOrder,
  ): Promise<void> => {
    const upstream = upstreamTo(serviceRoot);
    const { basePath } = upstream;
    const runToken = (): string => relays.get(id)?.token ?? '';
    const own = [memoryAnswers(basePath, memoryOf(id))];
    if (hasServices)
      own.push(
        serviceAnswers(basePath, runToken, (name, isStart) =>
          ask<ServiceState>(id, { about: 'service', name, isStart }),
        ),
      );
    if (cacheSocket !== undefined)
      own.push(cacheAnswers({ cache: remoteCache(cacheSocket), sandbox, basePath, runToken }));
    relays.set(id, { ...(await openRelay(socketPath, upstream, uid, own)), token: '' });
  };

  const openProxy = async (id: number, { socketPath, uid, hosts, settings, asked }: ProxyOrder): Promise<void> => {
    const egress = makeEgress(settings).ofExecution(hosts, (denied) => post({ type: 'denied', id, denied }), asked);
    proxies.set(id, { egress, proxy: await egress.open(socketPath, uid) });
  };

  const obey = async (request: ThreadRequest): Promise<void> => {
    switch (request.type) {
      case 'open_relay':
        return await open(request.id, request.order);
      case 'run_token': {
        const relay = relays.get(request.id);
        if (relay) relay.token = request.token;
        return;
      }
      case 'close_relay': {
        const relay = relays.get(request.id);
        relays.delete(request.id);
        return await relay?.close();
      }
      case 'open_proxy':
        return await openProxy(request.id, request.order);
      case 'end_proxy':
        return proxies.get(request.id)?.egress.end();
      case 'close_proxy': {
        const proxy = proxies.get(request.id);
        proxies.delete(request.id);
        return await proxy?.proxy.close();
      }
      case 'answer':
    }
  };

  port.on('message', (request: ThreadRequest) => {
    const { number } = request;
    if (request.type === 'answer') {
      asked.get(number)?.(request.answer);
      asked.delete(number);
      return;
    }
    obey(request).then(
      () => post({ type: 'done', number }),
      (error: Error) => post({ type: 'done', number, problem: error.message }),
    );
  });
}
