/** Programs that a run starts in the real sandbox of a worker, with the real agent beside them. */
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { startTestWorker, type TestWorker, type TestWorkerOptions } from '../../packages/worker/test/worker.ts';
import { type FakeHarnessSupport, startFakeHarnessSupport } from '../fakes/harness-support.ts';
import { fakeAssignment, startFakeWorkerService } from '../fakes/worker-service.ts';

const agentEntry = fileURLToPath(new URL('../../packages/agent/src/main.ts', import.meta.url));

export interface AgentProbe extends AsyncDisposable {
  readonly it: TestWorker;
  /** Executes a shell script as the command of a run, and returns the output of the command. */
  attempt(script: string): Promise<string>;
  /** Executes JavaScript as the command of a run, with the Node of the sandbox, and returns the output of the command. */
  attemptInNode(script: (token: string) => string): Promise<string>;
  /** Executes a shell script that may end its sandbox, and returns the worker's report about the end of the run. */
  ended(script: string): Promise<{ readonly failure_reason?: string | undefined; readonly message: string }>;
}

export async function openAgentProbe(settings: TestWorkerOptions['settings'] = {}): Promise<AgentProbe> {
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
  const it = await startTestWorker({ service, agentEntry, settings });
  let number = 0;
  const run = async <T>(
    script: (token: string) => string,
    result: (id: string, fake: FakeHarnessSupport) => Promise<T>,
  ): Promise<T> => {
    const id = `agent-probe-${++number}`;
    const fake = await startFakeHarnessSupport();
    fake.task = { ...fake.task, prompt: `\`\`\`sh\n${script(fake.token)}\n\`\`\`` };
    target = fake.url;
    try {
      service.send(fakeAssignment(id, [], { RUNYARD_RUN_TOKEN: fake.token }));
      return await result(id, fake);
    } finally {
      await fake.close();
    }
  };
  const completed = (id: string) => service.waitFor('task_completed', (data) => data.execution_id === id);
  const failed = (id: string) => service.waitFor('task_failed', (data) => data.execution_id === id);
  const output = (script: (token: string) => string): Promise<string> =>
    run(script, async (id, fake) => {
      await Promise.race([completed(id), failed(id).then(({ message }) => Promise.reject(new Error(message)))]);
      const [action] = fake.events.filter((event) => event.type === 'action');
      return fake.output(action?.action_id ?? '');
    });
  return {
    it,
    attempt: (script) => output(() => script),
    attemptInNode: (script) =>
      output((token) => ["cat >p.mjs <<'END'", script(token), 'END', 'node p.mjs 2>&1'].join('\n')),
    ended: (script) =>
      run(
        () => script,
        (id) => Promise.race([completed(id), failed(id)]),
      ),
    [Symbol.asyncDispose]: () => it[Symbol.asyncDispose](),
  };
}
