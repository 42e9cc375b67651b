/**
 * Decides for each outgoing connection of a program whether it goes through the proxy of HTTPS_PROXY and HTTP_PROXY. Before `useProxy` is
 * called, all connections are direct.
 */
import type { Agent, AgentOptions } from 'node:http';
import type { Socket } from 'node:net';
import { http } from '../node-http.ts';
import { isSecure, type ProxySettings, readProxySettings } from './proxy-settings.ts';

let settings: ProxySettings | undefined;
/** Turns the proxy off again in the parts of Node that choose the proxy themselves. */
let undo = (): void => {};

/** Longest time until the proxy has opened a connection. Without it, a proxy that does not answer would hold a request for ever. */
export const proxyConnectMs = 10_000;

/**
 * Makes this thread use the proxy of the environment for all its later connections. Each program calls it once, at its start, so later changes
 * of the environment have no effect. Throws an error that names the variable.
 */
export function useProxy(env: Readonly<Record<string, string | undefined>>): void {
  settings = readProxySettings(env);
  undo();
  undo = () => {};
  // This function sets the proxy for fetch, and for requests without an agent. It loads undici, so programs without a proxy do not call it.
  if (settings !== undefined) undo = http.setGlobalProxyFromEnv(settings.forNode);
}

/** Returns the proxy through which a connection to the URL goes; undefined: the connection is direct. */
export const proxyOf = (url: URL): URL | undefined => settings?.proxyOf(url);

/** Returns the value for the option `agent` of a request that has a new connection of its own. */
export function agentFor(url: URL): Agent | false {
  const proxy = proxyOf(url);
  return proxy === undefined ? false : makeAgent(url, proxy, {});
}

/**
 * Calls `then` when the socket of a request can send the request: at once, if the request has a connection of an earlier request, or a tunnel of
 * the proxy.
 */
export function whenOpen(socket: Socket, then: () => void): void {
  if (socket.connecting) socket.once('encrypted' in socket ? 'secureConnect' : 'connect', then);
  else then();
}

/** Connections that requests share. */
export interface Agents {
  of(url: URL): Agent;
  close(): void;
}

export function openAgents(options: AgentOptions): Agents {
  const agents = new Map<string, Agent>();
  return {
    of(url) {
      const proxy = proxyOf(url);
      const key = `${url.protocol} ${proxy?.href ?? ''}`;
      const agent = agents.get(key) ?? makeAgent(url, proxy, options);
      agents.set(key, agent);
      return agent;
    },
    close() {
      for (const agent of agents.values()) agent.destroy();
    },
  };
}

/** Returns options for the agents of libraries, which know only later to which hosts they connect; undefined: there is no proxy. */
export const optionsOfProxy = (): AgentOptions | undefined =>
  settings && { timeout: proxyConnectMs, proxyEnv: settings.forNode };

function makeAgent(url: URL, proxy: URL | undefined, options: AgentOptions): Agent {
  // Loads TLS only if it is needed, because a program starts faster without it.
  const { Agent } = isSecure(url) ? process.getBuiltinModule('node:https') : http;
  if (proxy === undefined) return new Agent(options);
  const { href } = proxy;
  return new Agent({ ...options, timeout: proxyConnectMs, proxyEnv: { http_proxy: href, https_proxy: href } });
}
