import { hostOf } from '@runyard/system/address-rules';
import { portOf, readProxySettings } from '@runyard/system/outgoing/proxy-settings';
import { connectToProxy, openTunnel, TunnelRefused } from '@runyard/system/outgoing/tunnel';
import { untrustedCertificate } from '@runyard/system/untrusted-certificate';
import type { Context } from '../context/context.ts';
import { harmlessLine } from '../terminal/harmless.ts';
import type { Finding } from './finding.ts';

const name = 'proxy';

/**
 * Asks the proxy of HTTPS_PROXY for a connection to the code host. If the code host needs no proxy, only connects to the proxy. Reports nothing
 * if no proxy is set.
 */
export async function checkProxy({ env, settings }: Pick<Context, 'env' | 'settings'>): Promise<Finding[]> {
  const found = readProxySettings(env);
  if (found === undefined) return [];
  const codeHost = new URL(settings.RUNYARD_CODE_HOST_URL.replaceAll(/[{}]/g, ''));
  const proxy = found.proxyOf(codeHost) ?? new URL(found.forNode.https_proxy);
  const shown = `${proxy.protocol}//${proxy.host}`;
  const host = hostOf(codeHost);
  const target = found.proxyOf(codeHost) && `${host.includes(':') ? `[${host}]` : host}:${portOf(codeHost)}`;
  const signal = new AbortController().signal;
  try {
    const socket = await (target ? openTunnel(proxy, target, signal) : connectToProxy(proxy, signal));
    socket.destroy();
    const detail = target === undefined ? `${shown} takes connections` : `${shown} opens connections to ${target}`;
    return [{ name, level: 'good', detail }];
  } catch (error) {
    if (error instanceof TunnelRefused && error.status !== 407) {
      const detail = `${shown} opens no connection to ${target}: it answers ${error.status}`;
      return [{ name, level: 'note', detail, fix: 'allow the host in the proxy, or name it in NO_PROXY' }];
    }
    if (error instanceof TunnelRefused) {
      const fix = 'write them into HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT';
      return [{ name, level: 'bad', detail: `${shown} asks for a user and a password (407)`, fix }];
    }
    const reason = untrustedCertificate(error) ?? harmlessLine((error as Error).message);
    return [{ name, level: 'bad', detail: `${shown} does not answer: ${reason}`, fix: 'correct HTTPS_PROXY' }];
  }
}
