/**
 * Explains answers that a proxy sends in place of the service. The keys are HTTP statuses. Each text has the next step for the operator of
 * the proxy.
 */
export const answersOfProxies: Readonly<Record<number, string>> = {
  413: 'A proxy in front of the service refuses a body of this size (HTTP 413). The service itself limits bodies, so the proxy should not: nginx: client_max_body_size 0 (docs/proxy.md).',
  502: 'A proxy answers, but does not reach the service (HTTP 502). Check that the service runs, and that the proxy has the right address for it.',
  504: 'A proxy gave up waiting for the service (HTTP 504). Give it more time; nginx: proxy_read_timeout 15m (docs/proxy.md).',
};
