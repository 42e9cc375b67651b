import type { ServiceClient } from '../service/client.ts';
import type { GrantedSecrets } from './granted-secrets.ts';

/** Returns a client whose reports do not contain the secrets of the run. The reporter redacts its events itself. */
export function redactingClient(client: ServiceClient, { redact }: Pick<GrantedSecrets, 'redact'>): ServiceClient {
  return {
    ...client,
    reportArtifact: (body, options) => client.reportArtifact(redact(body), options),
    uploadSnapshot: (body, options) => client.uploadSnapshot(redact(body), options),
    ask: (method, path, options) =>
      client.ask(method, path, options?.body === undefined ? options : { ...options, body: redact(options.body) }),
    finishTask: (body, options) => client.finishTask(redact(body), options),
    reportShutdown: (reason, options) => client.reportShutdown(redact(reason), options),
  };
}
