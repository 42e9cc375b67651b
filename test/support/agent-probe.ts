/** Programs that a run starts in the real sandbox of a worker, with the real agent beside them. */
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { startTestWorker } from '../../packages/worker/test/worker.ts';
import { startFakeHarnessSupport } from '../fakes/harness-support.ts';
import { fakeAssignment, startFakeWorkerService } from '../fakes/worker-service.ts';

const agentEntry = fileURLToPath(new URL('../../packages/agent/src/main.ts', import.meta.url));

export interface AgentProbe extends AsyncDisposable {
  /** Runs JavaScript as a command of a run, in the sandbox's own Node; what it printed. */
  attemptInNode(script: (token: string) => string): Promise<string>;
}

export async function openAgentProbe(): Promise<AgentProbe> {
  let target = '';
  const passOn = (incoming: IncomingMessage, response: ServerResponse): void => {
    const { method = 'GET', headers, url = '' } = incoming;
    const outgoing = request(target + url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    incoming.pipe(outgoing);
  };
  const service = await startFakeWorkerService({ onRequest: passOn });
  const it = await startTestWorker({ service, agentEntry });
  let number = 0;
  return {
    async attemptInNode(script) {
      const id = `agent-probe-${++number}`;
      const fake = await startFakeHarnessSupport();
      const lines = ["cat >p.mjs <<'END'", script(fake.token), 'END', 'node p.mjs 2>&1'];
      fake.task = { ...fake.task, prompt: `\`\`\`sh\n${lines.join('\n')}\n\`\`\`` };
      target = fake.url;
      try {
        service.send(fakeAssignment(id, [], { RUNYARD_RUN_TOKEN: fake.token }));
        const failed = service.waitFor('task_failed', (data) => data.execution_id === id);
        await Promise.race([
          service.waitFor('task_completed', (data) => data.execution_id === id),
          failed.then(({ message }) => Promise.reject(new Error(message))),
        ]);
        const [action] = fake.events.filter((event) => event.type === 'action');
        return fake.output(action?.action_id ?? '');
      } finally {
        await fake.close();
      }
    },
    [Symbol.asyncDispose]: () => it[Symbol.asyncDispose](),
  };
}
